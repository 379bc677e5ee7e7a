#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/tcp/socket.h"

namespace tprimat::engine {

// How many messages of one list are not done.
using OpenMessages = std::shared_ptr<int>;

// Which messages belong together: a group of ranks and a tag in it.
struct MessageKey {
  uint32_t context = 0, tag = 0;
  auto operator<=>(const MessageKey&) const = default;
};

// Messages to and from one peer over one connection, matched by key, in order. A short message is sent at once and kept
// where nobody waits for it yet. A long one is offered, and sent when the other side has a place for it: memory is
// never taken for more than was asked for, whatever the other side says.
class PeerLink {
 public:
  // A closed socket: the rank itself, whose messages stay here.
  PeerLink(Socket socket, int peer) : socket_(std::move(socket)), peer_(peer), is_self_(!socket_.is_open()) {}

  void post_send(MessageKey key, const std::byte* data, int64_t bytes, OpenMessages open);
  void post_receive(MessageKey key, std::byte* data, int64_t bytes, OpenMessages open);

  bool is_connected() const { return socket_.is_open(); }
  bool has_to_write() const { return is_connected() && !is_closed_to_us_ && !outgoing_.empty(); }
  int descriptor() const { return socket_.descriptor(); }

  // As far as it goes without waiting. Throws Error when the other side is gone before its work was done, or says what
  // it should not.
  void read();
  void write();

  void say_goodbye();    // after the last message; fits into what a socket keeps unless the machine is gone
  void drop_messages();  // whose memory may be gone

 private:
  enum class Kind : uint32_t { message = 1, offer, accept, payload, goodbye };
  // As it travels: both ends run the same program, and the rendezvous refuses another order of bytes.
  struct Head {
    Kind kind = Kind::message;
    MessageKey key;
    uint32_t reserved = 0;
    int64_t bytes = 0;
  };
  struct Part {  // of the caller's memory
    std::byte* data = nullptr;
    int64_t bytes = 0;
    OpenMessages open;
  };
  struct Frame {
    Head head;
    Part part;
    int64_t sent = 0;  // bytes of head and part
  };
  struct EarlyMessage {  // came before somebody asked for it
    int64_t bytes = 0;
    std::optional<std::vector<std::byte>> data;  // nothing: offered
  };
  using Parts = std::multimap<MessageKey, Part>;  // those of one key in the order of their insertion

  void queue_frame(Kind kind, MessageKey key, Part part);
  void begin_frame();
  void end_frame();
  void begin_message();
  void keep(MessageKey key, std::vector<std::byte> message);
  void accept_offer(MessageKey key, int64_t bytes, Part place);
  Part take_announced(Parts& parts);
  void check_bytes(int64_t came, int64_t wanted) const;
  void check_not_ended() const;
  void end();
  [[noreturn]] void fail(const std::string& what, const std::string& hint) const;

  Socket socket_;
  int peer_;
  bool is_self_;
  bool said_goodbye_ = false;     // the other side
  bool is_closed_to_us_ = false;  // it takes nothing more; what it said before is still read

  std::deque<Frame> outgoing_;
  Parts offers_;    // to send once they are accepted
  Parts places_;    // that wait for a message
  Parts accepted_;  // places whose offered message has not come
  std::multimap<MessageKey, EarlyMessage> early_;

  Head head_;  // of the frame that is coming
  size_t head_count_ = 0;
  Part body_;  // where its next byte goes, how many are missing
  std::vector<std::byte> early_body_;
};

}  // namespace tprimat::engine
