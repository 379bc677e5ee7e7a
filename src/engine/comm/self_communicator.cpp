#include <cstring>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "comm/communicator.h"

namespace tprimat::engine {
namespace {

class NoTransfer : public Transfer {
 public:
  void wait() override {}
};

void copy_values(const CommBuffer& from, const CommBuffer& to) {
  CHECK(from.type == to.type && from.count == to.count);
  if (from.data != to.data && from.count > 0) std::memmove(to.data, from.data, static_cast<size_t>(from.size()));
}

// What a group of one sends to itself: whichever of the two comes first waits for the other.
class Mailbox {
 public:
  void post_send(const CommBuffer& values, int tag) {
    const auto* bytes = static_cast<const std::byte*>(values.data);
    sent_[tag].emplace_back(bytes, bytes + values.size());
    deliver(tag);
  }
  void post_receive(const CommBuffer& values, int tag) {
    wanted_[tag].push_back(values);
    deliver(tag);
  }
  bool is_waiting(int tag) const {
    const auto found = wanted_.find(tag);
    return found != wanted_.end() && !found->second.empty();
  }

 private:
  void deliver(int tag) {
    auto& sent = sent_[tag];
    auto& wanted = wanted_[tag];
    while (!sent.empty() && !wanted.empty()) {
      CHECK(static_cast<int64_t>(sent.front().size()) == wanted.front().size());
      if (!sent.front().empty()) std::memcpy(wanted.front().data, sent.front().data(), sent.front().size());
      sent.pop_front();
      wanted.pop_front();
    }
  }

  std::map<int, std::deque<std::vector<std::byte>>> sent_;
  std::map<int, std::deque<CommBuffer>> wanted_;
};

class SelfReceive : public Transfer {
 public:
  SelfReceive(std::shared_ptr<Mailbox> mailbox, int tag) : mailbox_(std::move(mailbox)), tag_(tag) {}
  // Nobody else could still send: waiting for what was never sent would last forever.
  void wait() override { CHECK(!mailbox_->is_waiting(tag_)); }

 private:
  std::shared_ptr<Mailbox> mailbox_;
  int tag_;
};

class SelfCommunicator : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  TransferPtr start_all_reduce(CommBuffer, Reduction) override { return std::make_unique<NoTransfer>(); }
  TransferPtr start_all_gather(CommBuffer own, CommBuffer all) override {
    copy_values(own, all);
    return std::make_unique<NoTransfer>();
  }
  TransferPtr start_reduce_scatter(CommBuffer all, CommBuffer own) override {
    copy_values(all, own);
    return std::make_unique<NoTransfer>();
  }
  TransferPtr start_all_to_all(CommBuffer from, CommBuffer to) override {
    copy_values(from, to);
    return std::make_unique<NoTransfer>();
  }
  TransferPtr start_send(CommBuffer values, int to, int tag) override {
    CHECK(to == 0);
    mailbox_->post_send(values, tag);
    return std::make_unique<NoTransfer>();
  }
  TransferPtr start_receive(CommBuffer values, int from, int tag) override {
    CHECK(from == 0);
    mailbox_->post_receive(values, tag);
    return std::make_unique<SelfReceive>(mailbox_, tag);
  }
  void broadcast(CommBuffer, int root) override { CHECK(root == 0); }
  void barrier() override {}
  void progress() override {}
  std::unique_ptr<Communicator> split(int, int) override { return make_self_communicator(); }

 private:
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
};

}  // namespace

std::unique_ptr<Communicator> make_self_communicator() { return std::make_unique<SelfCommunicator>(); }

}  // namespace tprimat::engine
