#include "comm/tcp/socket.h"

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

constexpr int k_waiting_connections = 4096;  // the system's own limit is often lower

using AddressList = std::unique_ptr<addrinfo, decltype([](addrinfo* list) { ::freeaddrinfo(list); })>;

AddressList look_up(const std::string& host, int flags, std::string& reason) {
  addrinfo wanted{};
  wanted.ai_flags = flags;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int failure = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found); failure != 0)
    reason = ::gai_strerror(failure);
  return AddressList(found);
}

// As the system's functions take it.
struct SystemAddress {
  sockaddr_storage storage{};  // of no family where the text was no number of a host
  socklen_t length = sizeof(sockaddr_storage);
  sockaddr* pointer() { return reinterpret_cast<sockaddr*>(&storage); }
};

SystemAddress to_system(const HostAddress& address) {
  SystemAddress system;
  std::string reason;
  if (const AddressList found = look_up(address.host, AI_NUMERICHOST, reason))
    std::memcpy(&system.storage, found->ai_addr, system.length = found->ai_addrlen);
  // IPv4 and IPv6 have the port at the same place.
  reinterpret_cast<sockaddr_in*>(&system.storage)->sin_port = htons(address.port);
  return system;
}

HostAddress from_system(const sockaddr* system, socklen_t length) {
  char host[NI_MAXHOST] = "";
  if (::getnameinfo(system, length, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) return {};
  const std::string_view text = host, mapped = "::ffff:";  // IPv4 that a socket for both sees
  const bool is_mapped = text.starts_with(mapped) && text.find('.') != text.npos;
  return {std::string(is_mapped ? text.substr(mapped.size()) : text),
          ntohs(reinterpret_cast<const sockaddr_in*>(system)->sin_port)};
}

Socket make_socket(const SystemAddress& address) {
  return Socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

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

// False once the deadline has passed.
bool await_events(const Socket& socket, short events, Deadline deadline) {
  while (true) {
    const int left = milliseconds_until(deadline);
    pollfd waiting{socket.descriptor(), events, 0};
    if (::poll(&waiting, 1, left) > 0) return true;
    if (left == 0) return false;
  }
}

// A socket, or why there is none.
Socket try_to_listen(const HostAddress& address, int& failure) {
  SystemAddress system = to_system(address);
  Socket socket = make_socket(system);
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.host == "::") set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (socket.is_open() && ::bind(socket.descriptor(), system.pointer(), system.length) == 0 &&
      ::listen(socket.descriptor(), k_waiting_connections) == 0)
    return socket;
  failure = errno;
  return Socket();
}

// 0, or why there is no connection.
int await_connection(const Socket& socket, SystemAddress address, Deadline deadline) {
  if (!socket.is_open()) return errno;
  if (::connect(socket.descriptor(), address.pointer(), address.length) != 0 && errno != EINPROGRESS) return errno;
  if (!await_events(socket, POLLOUT, deadline)) return ETIMEDOUT;
  int failure = 0;
  socklen_t length = sizeof failure;
  return ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &failure, &length) != 0 ? errno : failure;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool is_loopback(const HostAddress& address) { return address.host.starts_with("127.") || address.host == "::1"; }

std::string to_text(const HostAddress& address) {
  const bool has_colons = address.host.find(':') != address.host.npos;
  return has_colons ? fmt::format("[{}]:{}", address.host, address.port)
                    : fmt::format("{}:{}", address.host, address.port);
}

std::vector<HostAddress> resolve_host(const std::string& host, uint16_t port, std::string& reason) {
  std::vector<HostAddress> addresses;
  const AddressList found = look_up(host, 0, reason);
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next)
    addresses.push_back({from_system(each->ai_addr, each->ai_addrlen).host, port});
  return addresses;
}

Socket listen_at(const HostAddress& address) {
  int failure = 0;
  Socket socket = try_to_listen(address.host.empty() ? HostAddress{"::", address.port} : address, failure);
  if (!socket.is_open() && address.host.empty() && failure != EADDRINUSE)  // a system without IPv6
    socket = try_to_listen({"0.0.0.0", address.port}, failure);
  if (socket.is_open()) return socket;
  throw Error(
      Problem{fmt::format("cannot listen on port {}: {}", address.port, std::strerror(failure)), "ranks over TCP",
              "another program may hold it: give every rank another MASTER_PORT or TPRIMAT_RENDEZVOUS_PORT"},
      ExitStatus::work_failed);
}

HostAddress own_address(const Socket& socket) {
  SystemAddress address;
  if (::getsockname(socket.descriptor(), address.pointer(), &address.length) != 0) return {};
  return from_system(address.pointer(), address.length);
}

HostAddress peer_address(const Socket& socket) {
  SystemAddress address;
  if (::getpeername(socket.descriptor(), address.pointer(), &address.length) != 0) return {};
  return from_system(address.pointer(), address.length);
}

std::optional<Socket> accept_connection(const Socket& listener) {
  Socket socket(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.is_open() && (errno == EMFILE || errno == ENFILE))
    throw Error(Problem{fmt::format("cannot accept a connection: {}", std::strerror(errno)), "ranks over TCP",
                        "raise the limit of open files: ulimit -n 65536"},
                ExitStatus::work_failed);
  if (!socket.is_open()) return std::nullopt;
  prepare_connection(socket);
  return socket;
}

Deadline deadline_in(double seconds) {
  return SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(seconds));
}

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

std::optional<Socket> connect_to(const HostAddress& address, Deadline deadline, std::string& reason) {
  const SystemAddress system = to_system(address);
  Socket socket = make_socket(system);
  if (const int failure = await_connection(socket, system, deadline); failure != 0) {
    reason = std::strerror(failure);
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

bool has_left(const Socket& socket) {
  std::byte byte;
  const ssize_t count = ::recv(socket.descriptor(), &byte, 1, MSG_PEEK);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

bool has_bytes(const Socket& socket, size_t count) {
  std::vector<std::byte> bytes(count);
  return ::recv(socket.descriptor(), bytes.data(), count, MSG_PEEK) == static_cast<ssize_t>(count);
}

}  // namespace tprimat::engine
