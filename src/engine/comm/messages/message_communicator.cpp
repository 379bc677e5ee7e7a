#include "comm/messages/message_communicator.h"

#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"
#include "comm/messages/reduce_work.h"

namespace tprimat::engine {
namespace {

bool is_sendable(const CommBuffer& values, int peer, int tag, const MessageGroup& group) {
  return peer >= 0 && peer < group.size() && tag >= 0 && tag < MessageGroup::k_first_tag && values.count >= 0;
}

class PlainWork : public MessageWork {
 public:
  explicit PlainWork(std::unique_ptr<Messages> messages) : messages_(std::move(messages)) {}
  bool advance() override { return messages_->are_done(); }

 private:
  std::unique_ptr<Messages> messages_;
};

}  // namespace

TransferPtr start_messages(MessageGroup& group, std::unique_ptr<Messages> messages) {
  return group.traffic().start(std::make_unique<PlainWork>(std::move(messages)));
}

TransferPtr MessageCommunicator::start_all_reduce(CommBuffer values, Reduction reduction) {
  return group_->traffic().start(make_reduce_work(*group_, {values, reduction, std::nullopt}));
}

TransferPtr MessageCommunicator::start_reduce_scatter(CommBuffer all, CommBuffer own) {
  return group_->traffic().start(make_reduce_work(*group_, {all, Reduction::sum, own}));
}

TransferPtr MessageCommunicator::start_all_gather(CommBuffer own, CommBuffer all) {
  CHECK(own.type == all.type && own.count * size() == all.count);
  const int tag = group_->next_tag();
  const int64_t bytes = own.size();
  std::byte* const place = bytes_of(all) + rank() * bytes;
  if (place != own.data && bytes > 0) std::memcpy(place, own.data, static_cast<size_t>(bytes));
  auto messages = group_->make_messages();
  for (int step = 1; step < size() && bytes > 0; ++step) {
    const int peer = (rank() + step) % size();
    messages->post_receive(bytes_of(all) + peer * bytes, bytes, peer, tag);
    messages->post_send(place, bytes, peer, tag);
  }
  return start_messages(*group_, std::move(messages));
}

// Step s sends to the rank s places ahead, so that no rank gets the messages of all others at once.
TransferPtr MessageCommunicator::start_all_to_all(CommBuffer from, CommBuffer to) {
  CHECK(from.type == to.type && from.count == to.count && from.count % size() == 0);
  const int tag = group_->next_tag();
  const int64_t bytes = from.size() / size();
  const auto block = [&](const CommBuffer& buffer, int rank) { return bytes_of(buffer) + rank * bytes; };
  if (bytes > 0) std::memcpy(block(to, rank()), block(from, rank()), static_cast<size_t>(bytes));
  auto messages = group_->make_messages();
  for (int step = 1; step < size() && bytes > 0; ++step) {
    const int next = (rank() + step) % size(), previous = (rank() - step + size()) % size();
    messages->post_receive(block(to, previous), bytes, previous, tag);
    messages->post_send(block(from, next), bytes, next, tag);
  }
  return start_messages(*group_, std::move(messages));
}

TransferPtr MessageCommunicator::start_send(CommBuffer values, int to, int tag) {
  CHECK(is_sendable(values, to, tag, *group_));
  auto messages = group_->make_messages();
  messages->post_send(bytes_of(values), values.size(), to, tag);
  return start_messages(*group_, std::move(messages));
}

TransferPtr MessageCommunicator::start_receive(CommBuffer values, int from, int tag) {
  CHECK(is_sendable(values, from, tag, *group_));
  auto messages = group_->make_messages();
  messages->post_receive(bytes_of(values), values.size(), from, tag);
  return start_messages(*group_, std::move(messages));
}

// A chain of halves (binomial tree): rank v = (rank − root) mod R receives from v without its lowest set bit.
void MessageCommunicator::broadcast(CommBuffer values, int root) {
  CHECK(root >= 0 && root < size());
  const int tag = group_->next_tag();
  const int place = (rank() - root + size()) % size();
  const auto rank_of = [&](int other) { return (other + root) % size(); };
  int bit = 1;
  for (; bit < size(); bit <<= 1) {
    if ((place & bit) == 0) continue;
    auto from_parent = group_->make_messages();
    from_parent->post_receive(bytes_of(values), values.size(), rank_of(place - bit), tag);
    start_messages(*group_, std::move(from_parent))->wait();
    break;
  }
  auto to_children = group_->make_messages();
  while (bit >>= 1)
    if (place + bit < size()) to_children->post_send(bytes_of(values), values.size(), rank_of(place + bit), tag);
  start_messages(*group_, std::move(to_children))->wait();
}

// In round k each rank hears from the one 2^k before it, and so of all that this one has heard of (dissemination).
void MessageCommunicator::barrier() {
  const int tag = group_->next_tag();
  for (int distance = 1; distance < size(); distance <<= 1) {
    auto round = group_->make_messages();
    round->post_receive(nullptr, 0, (rank() - distance % size() + size()) % size(), tag);
    round->post_send(nullptr, 0, (rank() + distance) % size(), tag);
    start_messages(*group_, std::move(round))->wait();
  }
}

}  // namespace tprimat::engine
