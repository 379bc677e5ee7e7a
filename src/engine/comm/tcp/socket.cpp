#include "comm/tcp/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace tprimat::engine {
namespace {

constexpr std::array<uint8_t, 12> k_ipv4_prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr int k_waiting_connections = 4096;  // the system's own limit is often lower

std::string text_of_errno(int number) { return std::strerror(number); }

bool is_ipv4(const HostAddress& address) {
  return std::equal(k_ipv4_prefix.begin(), k_ipv4_prefix.end(), address.bytes.begin());
}

// As the system's functions take it.
struct SystemAddress {
  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_storage);
  sockaddr* pointer() { return reinterpret_cast<sockaddr*>(&storage); }
};

SystemAddress to_system(const HostAddress& address) {
  SystemAddress system;
  if (is_ipv4(address)) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(address.port);
    std::memcpy(&in.sin_addr, address.bytes.data() + k_ipv4_prefix.size(), sizeof in.sin_addr);
    std::memcpy(&system.storage, &in, system.length = sizeof in);
  } else {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(address.port);
    std::memcpy(&in.sin6_addr, address.bytes.data(), sizeof in.sin6_addr);
    std::memcpy(&system.storage, &in, system.length = sizeof in);
  }
  return system;
}

HostAddress from_system(const sockaddr* system) {
  HostAddress address;
  if (system->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, system, sizeof in);
    std::array<uint8_t, 4> bytes{};
    std::memcpy(bytes.data(), &in.sin_addr, bytes.size());
    address = ipv4_address(bytes, ntohs(in.sin_port));
  } else if (system->sa_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, system, sizeof in);
    std::memcpy(address.bytes.data(), &in.sin6_addr, address.bytes.size());
    address.port = ntohs(in.sin6_port);
  }
  return address;
}

Socket make_socket(int family) { return Socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

void set_option(const Socket& socket, int level, int option, int value) {
  static_cast<void>(::setsockopt(socket.descriptor(), level, option, &value, sizeof value));  // as far as it is known
}

// Small messages leave at once. A machine that is gone without a word is noticed after some minutes.
void prepare_connection(const Socket& socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 20);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 6);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 180'000);  // ms
}

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

// False once the deadline has passed.
bool await_events(const Socket& socket, short events, Deadline deadline) {
  while (true) {
    const int left = milliseconds_until(deadline);
    pollfd waiting{socket.descriptor(), events, 0};
    if (::poll(&waiting, 1, left) > 0) return true;
    if (left == 0) return false;
  }
}

// 0, or why not.
int bind_and_listen(const Socket& socket, SystemAddress address) {
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(socket.descriptor(), address.pointer(), address.length) != 0) return errno;
  return ::listen(socket.descriptor(), k_waiting_connections) != 0 ? errno : 0;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

HostAddress ipv4_address(std::array<uint8_t, 4> bytes, uint16_t port) {
  HostAddress address;
  std::copy(k_ipv4_prefix.begin(), k_ipv4_prefix.end(), address.bytes.begin());
  std::copy(bytes.begin(), bytes.end(), address.bytes.begin() + k_ipv4_prefix.size());
  address.port = port;
  return address;
}

bool is_loopback(const HostAddress& address) {
  if (is_ipv4(address)) return address.bytes[k_ipv4_prefix.size()] == 127;
  std::array<uint8_t, 16> one{};
  one.back() = 1;
  return address.bytes == one;
}

std::string to_text(const HostAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (is_ipv4(address)) {
    ::inet_ntop(AF_INET, address.bytes.data() + k_ipv4_prefix.size(), text, sizeof text);
    return fmt::format("{}:{}", text, address.port);
  }
  ::inet_ntop(AF_INET6, address.bytes.data(), text, sizeof text);
  return fmt::format("[{}]:{}", text, address.port);
}

std::vector<HostAddress> resolve_host(const std::string& host, uint16_t port, std::string& reason) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, [](addrinfo* list) {
    if (list != nullptr) ::freeaddrinfo(list);
  });
  std::vector<HostAddress> addresses;
  if (failure != 0) {
    reason = ::gai_strerror(failure);
    return addresses;
  }
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    addresses.push_back(from_system(each->ai_addr));
    addresses.back().port = port;
  }
  return addresses;
}

Socket listen_at(const std::optional<HostAddress>& address, uint16_t port) {
  int failure = 0;
  if (!address) {
    Socket both = make_socket(AF_INET6);
    set_option(both, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    HostAddress any;  // ::
    any.port = port;
    if (both.is_open() && (failure = bind_and_listen(both, to_system(any))) == 0) return both;
  }
  if (failure != EADDRINUSE) {  // a system without IPv6
    HostAddress place = address.value_or(ipv4_address({0, 0, 0, 0}, 0));
    place.port = port;
    Socket socket = make_socket(is_ipv4(place) ? AF_INET : AF_INET6);
    failure = socket.is_open() ? bind_and_listen(socket, to_system(place)) : errno;
    if (failure == 0) return socket;
  }
  throw Error(Problem{fmt::format("cannot listen on port {}: {}", port, text_of_errno(failure)), "ranks over TCP",
                      "another program may hold it: give every rank another MASTER_PORT or TPRIMAT_RENDEZVOUS_PORT"},
              ExitStatus::work_failed);
}

HostAddress own_address(const Socket& socket) {
  SystemAddress address;
  if (::getsockname(socket.descriptor(), address.pointer(), &address.length) != 0) return {};
  return from_system(address.pointer());
}

HostAddress peer_address(const Socket& socket) {
  SystemAddress address;
  if (::getpeername(socket.descriptor(), address.pointer(), &address.length) != 0) return {};
  return from_system(address.pointer());
}

std::optional<Socket> accept_connection(const Socket& listener) {
  Socket socket(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.is_open() && (errno == EMFILE || errno == ENFILE))
    throw Error(Problem{"cannot accept a connection: " + text_of_errno(errno), "ranks over TCP",
                        "raise the limit of open files: ulimit -n 65536"},
                ExitStatus::work_failed);
  if (!socket.is_open()) return std::nullopt;
  prepare_connection(socket);
  return socket;
}

Deadline deadline_in(double seconds) {
  return SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(seconds));
}

std::optional<Socket> connect_to(const HostAddress& address, Deadline deadline, std::string& reason) {
  SystemAddress system = to_system(address);
  Socket socket = make_socket(is_ipv4(address) ? AF_INET : AF_INET6);
  int failure = 0;
  if (!socket.is_open()) {
    failure = errno;
  } else if (::connect(socket.descriptor(), system.pointer(), system.length) != 0 && errno != EINPROGRESS) {
    failure = errno;
  } else if (!await_events(socket, POLLOUT, deadline)) {
    failure = ETIMEDOUT;
  } else {
    socklen_t length = sizeof failure;
    if (::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &failure, &length) != 0) failure = errno;
  }
  if (failure != 0) {
    reason = text_of_errno(failure);
    return std::nullopt;
  }
  prepare_connection(socket);
  return socket;
}

bool send_all(const Socket& socket, std::span<const std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) bytes = bytes.subspan(static_cast<size_t>(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (sent < 0 && errno == EAGAIN && !await_events(socket, POLLOUT, deadline)) return false;
  }
  return true;
}

std::optional<size_t> receive_some(const Socket& socket, std::span<std::byte> bytes) {
  if (bytes.empty()) return 0;
  const ssize_t received = ::recv(socket.descriptor(), bytes.data(), bytes.size(), 0);
  if (received > 0) return static_cast<size_t>(received);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  return std::nullopt;
}

bool receive_all(const Socket& socket, std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const auto received = receive_some(socket, bytes);
    if (!received) return false;
    bytes = bytes.subspan(*received);
    if (*received == 0 && !await_events(socket, POLLIN, deadline)) return false;
  }
  return true;
}

}  // namespace tprimat::engine
