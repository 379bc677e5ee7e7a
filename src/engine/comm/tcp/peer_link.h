#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
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
  PeerLink(Socket socket, int peer);

  void post_send(MessageKey key, const std::byte* data, int64_t bytes, OpenMessages open);
  void post_receive(MessageKey key, std::byte* data, int64_t bytes, OpenMessages open);

  bool is_connected() const { return socket_.is_open(); }
  bool has_to_write() const { return is_connected() && !is_closed_to_us_ && !outgoing_.empty(); }
  int descriptor() const { return socket_.descriptor(); }

  // As far as it goes without waiting. Throws Error when the other side is gone before its work was done, or says what
  // it should not.
  void read();
  void write();

  void say_goodbye();
  void drop_messages();  // whose memory may be gone

 private:
  enum class Kind : uint32_t { message = 1, offer, accept, payload, goodbye };
  struct Head {
    Kind kind = Kind::message;
    MessageKey key;
    uint32_t number = 0;  // of an offer
    int64_t bytes = 0;
  };
  static constexpr size_t k_head_bytes = 24;
  struct Outgoing {
    std::array<std::byte, k_head_bytes> head;
    const std::byte* data;
    int64_t bytes, sent = 0;  // sent: of head and data
    OpenMessages open;        // nothing where nobody waits for this frame's end
  };
  struct Place {
    std::byte* data = nullptr;
    int64_t bytes = 0;
    OpenMessages open;
  };
  struct Source {
    const std::byte* data = nullptr;
    int64_t bytes = 0;
    OpenMessages open;
  };
  struct Early {  // what came before somebody asked for it
    bool offered = false;
    uint32_t number = 0;
    int64_t bytes = 0;
    std::vector<std::byte> data;
  };

  static std::array<std::byte, k_head_bytes> print_head(const Head& head);
  static Head parse_head(std::span<const std::byte> bytes);

  void queue_frame(const Head& head, const std::byte* data, OpenMessages open);
  void read_frames();
  void begin_frame(const Head& head);
  void begin_message(const Head& head);
  void take_offer(const Head& head);
  void answer_accept(const Head& head);
  void begin_payload(const Head& head);
  void end_body();
  void accept_offer(uint32_t number, const Place& place);
  Place take_place(MessageKey key, int64_t bytes);
  void check_bytes(int64_t came, int64_t wanted) const;
  void end();
  [[noreturn]] void fail(const std::string& what, const std::string& hint) const;

  Socket socket_;
  int peer_;
  bool is_self_ = false;
  bool said_goodbye_ = false;     // the other side
  bool is_closed_to_us_ = false;  // it takes nothing more; what it said before is still read

  std::deque<Outgoing> outgoing_;
  std::map<uint32_t, Source> offers_;  // that wait for an accept
  uint32_t next_offer_ = 0;

  std::map<MessageKey, std::deque<Place>> places_;  // that wait for a message
  std::map<MessageKey, std::deque<Early>> early_;
  std::map<uint32_t, Place> accepted_;  // offers whose payload has not come

  std::vector<std::byte> staging_;
  size_t staged_begin_ = 0, staged_end_ = 0;
  Place body_;  // of the frame that is coming: where its next byte goes, how many are missing
  bool in_body_ = false, body_is_early_ = false;
  MessageKey body_key_;
  std::vector<std::byte> early_body_;
};

}  // namespace tprimat::engine
