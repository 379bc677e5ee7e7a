#pragma once

#include <cstddef>
#include <memory>

#include "comm/communicator.h"
#include "comm/messages/traffic.h"

namespace tprimat::engine {

inline std::byte* bytes_of(const CommBuffer& buffer) { return static_cast<std::byte*>(buffer.data); }

// Messages that a transport works on. What they point to belongs to it until they are done.
class Messages {
 public:
  virtual ~Messages() = default;
  virtual void post_send(const std::byte* data, int64_t bytes, int to, int tag) = 0;
  virtual void post_receive(std::byte* data, int64_t bytes, int from, int tag) = 0;
  virtual bool are_done() = 0;  // once true it stays true until something is posted
};

// Messages of one group of ranks, over MPI or sockets: matched by (peer, tag), in order. Everything that ranks exchange
// travels as point-to-point messages of bytes, because only those can be started in any order: MPI's own non-blocking
// collectives must be started in the same order everywhere, which the second halves of several all-reduces under way
// cannot promise.
class MessageGroup {
 public:
  MessageGroup(int rank, int size) : rank_(rank), size_(size) {}
  virtual ~MessageGroup() = default;
  MessageGroup(const MessageGroup&) = delete;
  MessageGroup& operator=(const MessageGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  virtual std::unique_ptr<Messages> make_messages() = 0;
  virtual Traffic& traffic() = 0;

  // Two tags for each collective, above those of point-to-point transfers. Numbers come again after a million
  // collectives; messages with the same tag stay in order.
  int next_tag() { return k_first_tag + static_cast<int>(2 * (collectives_++ % 1'000'000)); }
  static constexpr int k_first_tag = 1 << 15;

 private:
  int rank_, size_;
  int64_t collectives_ = 0;  // started so far
};

// A transfer that is done when the messages are.
TransferPtr start_messages(MessageGroup& group, std::unique_ptr<Messages> messages);

}  // namespace tprimat::engine
