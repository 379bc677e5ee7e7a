#pragma once

#include <array>
#include <list>
#include <optional>

#include "comm/tcp/meeting_messages.h"
#include "comm/tcp/socket.h"

namespace tprimat::engine {

// A connection that said hello in our own protocol.
struct Guest {
  Socket socket;
  MeetingHello hello;
};

// Takes connections and their first message. Strangers cost nothing: who says something else is sent away, who says
// nothing waits a while, and many who say nothing push each other out.
class Reception {
 public:
  explicit Reception(Socket listener) : listener_(std::move(listener)) {}

  // Nothing when nobody came until then.
  std::optional<Guest> next(Deadline until);
  const Socket& listener() const { return listener_; }

 private:
  struct Visitor {
    Socket socket;
    Deadline patience;
    std::array<std::byte, k_hello_bytes> said{};
    size_t count = 0;  // of bytes said
  };
  void let_in();
  void await_stir(Deadline until);
  std::optional<Guest> listen_to_visitors();

  Socket listener_;
  std::list<Visitor> visitors_;
};

}  // namespace tprimat::engine
