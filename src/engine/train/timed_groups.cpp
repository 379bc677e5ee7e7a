#include "train/timed_groups.h"

#include <exception>
#include <utility>

namespace tprimat::engine {
namespace {

OpClock::Call describe(std::string_view name, const OpGroup& group, const CommBuffer& values) {
  OpClock::Call call{name, OpKind::collective, {}, group};
  call.work.bytes = static_cast<double>(values.size());
  call.work.inputs = {OpDims{values.count}};
  call.work.type = values.type;
  return call;
}

class TimedTransfer final : public Transfer {
 public:
  TimedTransfer(TransferPtr transfer, OpClock* clock, const OpClock::Call& call, OpClock::OpenOp begun)
      : transfer_(std::move(transfer)), clock_(clock), call_(call), begun_(std::move(begun)), calls_(clock->calls()) {}
  // The transfer waits here at the latest; while an exception is on its way, for no figure.
  ~TimedTransfer() override {
    if (transfer_ == nullptr || std::uncaught_exceptions() > 0) return;
    OpClock::OpenOp op = begin();
    transfer_.reset();
    clock_->close(std::move(op), call_);
  }
  void wait() override {
    if (transfer_ == nullptr) return;
    OpClock::OpenOp op = begin();
    std::exchange(transfer_, nullptr)->wait();
    clock_->close(std::move(op), call_);
  }

 private:
  OpClock::OpenOp begin() { return clock_->calls() == calls_ ? std::move(begun_) : clock_->mark_begin(); }

  TransferPtr transfer_;
  OpClock* clock_;
  OpClock::Call call_;
  OpClock::OpenOp begun_;
  int64_t calls_;
};

class TimedCommunicator final : public Communicator {
 public:
  TimedCommunicator(std::unique_ptr<Communicator> group, OpClock* const* clock, std::string_view name)
      : group_(std::move(group)), clock_(clock), name_{name, group_->size()} {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  TransferPtr start_all_reduce(CommBuffer values, Reduction reduction) override {
    return time("all_reduce", values, [&] { return group_->start_all_reduce(values, reduction); });
  }
  TransferPtr start_all_gather(CommBuffer own, CommBuffer all) override {
    return time("all_gather", own, [&] { return group_->start_all_gather(own, all); });
  }
  TransferPtr start_reduce_scatter(CommBuffer all, CommBuffer own) override {
    return time("reduce_scatter", all, [&] { return group_->start_reduce_scatter(all, own); });
  }
  TransferPtr start_all_to_all(CommBuffer from, CommBuffer to) override {
    return time("all_to_all", from, [&] { return group_->start_all_to_all(from, to); });
  }
  TransferPtr start_send(CommBuffer values, int to, int tag) override {
    return time("send", values, [&] { return group_->start_send(values, to, tag); });
  }
  TransferPtr start_receive(CommBuffer values, int from, int tag) override {
    return time("recv", values, [&] { return group_->start_receive(values, from, tag); });
  }
  void connect_neighbours() override { group_->connect_neighbours(); }
  void broadcast(CommBuffer values, int root) override { group_->broadcast(values, root); }
  void barrier() override { group_->barrier(); }
  void progress() override { group_->progress(); }
  std::unique_ptr<Communicator> split(int color, int key) override { return group_->split(color, key); }

 private:
  template <class Start>
  TransferPtr time(std::string_view name, const CommBuffer& values, const Start& start) {
    OpClock* const clock = *clock_;
    if (clock == nullptr || !clock->keeps_events()) return start();
    OpClock::OpenOp begun = clock->mark_begin();
    return std::make_unique<TimedTransfer>(start(), clock, describe(name, name_, values), std::move(begun));
  }

  std::unique_ptr<Communicator> group_;
  OpClock* const* clock_;
  OpGroup name_;
};

}  // namespace

RankGroups time_groups(RankGroups groups, OpClock* const* clock, bool on_device) {
  const std::pair<std::unique_ptr<Communicator>*, std::string_view> named[] = {
      {&groups.world, "world"},         {&groups.tensor, "tensor"},      {&groups.context, "context"},
      {&groups.pipeline, "pipeline"},   {&groups.data, "data"},          {&groups.model, "model"},
      {&groups.embedding, "embedding"}, {&groups.key_value, "key_value"}};
  for (const auto& [group, name] : named)
    if ((*group)->size() > 1 && !(on_device && name == "world"))
      *group = std::make_unique<TimedCommunicator>(std::move(*group), clock, name);
  return groups;
}

}  // namespace tprimat::engine
