#pragma once

#include <array>
#include <list>
#include <optional>

#include "comm/tcp/rendezvous_messages.h"
#include "comm/tcp/socket.h"

namespace tprimat::engine {

// A connection whose first message was a valid hello.
struct IncomingPeer {
  Socket socket;
  RendezvousHello hello;
};

// Accepts connections and reads their first message. A connection that sends anything else is closed, one that sends
// nothing is dropped after a timeout, and too many silent ones displace the oldest.
class Listener {
 public:
  explicit Listener(Socket socket) : socket_(std::move(socket)) {}

  // Nothing when no peer came in time.
  std::optional<IncomingPeer> next(Deadline until);
  const Socket& socket() const { return socket_; }

 private:
  struct PendingConnection {
    Socket socket;
    Deadline deadline;
    std::array<std::byte, k_hello_bytes> bytes{};
    size_t count = 0;  // of bytes received
  };
  void accept_connections();
  void wait_for_event(Deadline until);
  std::optional<IncomingPeer> read_pending();

  Socket socket_;
  std::list<PendingConnection> pending_;
};

}  // namespace tprimat::engine
