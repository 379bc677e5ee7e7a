#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace tprimat::engine {

// An open socket; closed when it goes. None of ours outlives an exec, and all are non-blocking.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

// Where a socket can be reached: the host by number, as people write it.
struct HostAddress {
  std::string host;  // "10.0.0.3", "fd00::3"
  uint16_t port = 0;
};
bool is_loopback(const HostAddress& address);
std::string to_text(const HostAddress& address);  // "10.0.0.3:29500", "[fd00::3]:29500"

// Addresses of a host by name or number, each with this port; nothing, and why, where it has none.
std::vector<HostAddress> resolve_host(const std::string& host, uint16_t port, std::string& reason);

// Accepts connections: at this address, or at all of this machine's where it names no host. Port 0: one that the system
// picks. Throws Error.
Socket listen_at(const HostAddress& address);
HostAddress own_address(const Socket& socket);
HostAddress peer_address(const Socket& socket);

// The next connection that has come; nothing where none waits.
std::optional<Socket> accept_connection(const Socket& listener);

using Deadline = SteadyClock::time_point;
Deadline deadline_in(double seconds);
int milliseconds_until(Deadline deadline);  // as poll() takes them

// Nothing, and why, where nobody answers before the deadline.
std::optional<Socket> connect_to(const HostAddress& address, Deadline deadline, std::string& reason);

// Whole messages, waiting until the deadline. False where it passes or the other side is gone.
bool send_all(const Socket& socket, std::span<const std::byte> bytes, Deadline deadline);
bool receive_all(const Socket& socket, std::span<std::byte> bytes, Deadline deadline);

// Bytes that are there now: how many were read; nothing where the other side is gone.
std::optional<size_t> receive_some(const Socket& socket, std::span<std::byte> bytes);

// Without reading: whether the other side is gone, whether so many bytes are there.
bool has_left(const Socket& socket);
bool has_bytes(const Socket& socket, size_t count);

}  // namespace tprimat::engine
