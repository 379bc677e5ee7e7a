#pragma once

#include <memory>

#include "comm/messages/message_group.h"

namespace tprimat::engine {

// What ranks do together, made of messages. How a group is split is the transport's.
class MessageCommunicator : public Communicator {
 public:
  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  TransferPtr start_all_reduce(CommBuffer values, Reduction reduction) override;
  TransferPtr start_all_gather(CommBuffer own, CommBuffer all) override;
  TransferPtr start_reduce_scatter(CommBuffer all, CommBuffer own) override;
  TransferPtr start_all_to_all(CommBuffer from, CommBuffer to) override;
  TransferPtr start_send(CommBuffer values, int to, int tag) override;
  TransferPtr start_receive(CommBuffer values, int from, int tag) override;
  void broadcast(CommBuffer values, int root) override;
  void barrier() override;
  void progress() override { group_->traffic().move_on(); }

 protected:
  explicit MessageCommunicator(std::unique_ptr<MessageGroup> group) : group_(std::move(group)) {}
  MessageGroup& group() { return *group_; }

 private:
  std::unique_ptr<MessageGroup> group_;
};

}  // namespace tprimat::engine
