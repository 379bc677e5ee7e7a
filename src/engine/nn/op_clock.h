#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/accelerator.h"
#include "nn/op_event.h"

namespace tprimat::engine {

// Where a step's time goes, by operation.
struct OpTotal {
  int64_t calls = 0;
  double seconds = 0;
  double flops = 0;  // 0 for operations that are bound by memory
  double bytes = 0;  // read and written, each operand once
};

// Times operations. On a CPU an operation has ended when its call returns. GPU kernels run asynchronously: the clock
// records events around each operation and reads them after the step, without extra synchronization. Events in
// recorded work are recorded anew at each replay. Operations that are launched one by one are also ranges of the
// vendor's profiler (NVTX, ROCTX).
class OpClock {
 public:
  void add(std::string_view name, const OpTotal& total);
  void clear() { totals_.clear(); }

  // From now on every call is kept, not only the totals, and so are collectives and ranges.
  void keep_events() { keeps_events_ = true; }
  bool keeps_events() const { return keeps_events_; }
  void forget_events() { events_.clear(); }
  const std::vector<OpEvent>& events() const { return events_; }
  const std::map<std::string, OpTotal, std::less<>>& totals() const { return totals_; }
  // On a processor: after each operation, with its seconds. What it does belongs to no operation.
  void call_after_each(std::function<void(double)> action) { after_each_ = std::move(action); }

  // Times are the device's; nullptr: the processor's.
  void use_device(Accelerator* device);
  // Only ranges of a profiler, no times.
  void name_ranges_only() { times_ = false; }
  // Whether work may be recorded while the clock runs: a profiler sees no ranges inside recorded work.
  bool allows_recording() const { return device_ == nullptr || (times_ && device_->times_recorded_work()); }

  // Operations between these belong to recorded work, which counts at each replay. Forgets earlier recordings.
  void begin_recording();
  void end_recording() { records_ = false; }
  void note_replay() { replayed_ = true; }

  void begin_step();
  void finish_step();  // the device has done all that it was given

  struct OpenOp {
    std::chrono::steady_clock::time_point begin;
    std::unique_ptr<DeviceEvent> first;
  };
  OpenOp open(std::string_view name);
  OpenOp mark_begin();  // the same without a range for the vendor's profiler; close() it with a collective
  int64_t calls() const { return calls_; }  // closed so far
  struct Call {
    std::string_view name;
    OpKind kind = OpKind::operation;
    OpWork work = {};
    OpGroup group = {};
  };
  void close(OpenOp op, const Call& call);

  // Where the training is, for the calls that follow.
  OpScope scope;

 private:
  struct Span {
    OpEvent event;  // without its times
    std::unique_ptr<DeviceEvent> first, last;
  };
  OpEvent describe(const Call& call) const;
  void count(const Span& span);
  std::unique_ptr<DeviceEvent> mark();

  std::map<std::string, OpTotal, std::less<>> totals_;
  std::function<void(double)> after_each_;
  bool keeps_events_ = false, times_ = true;
  std::vector<OpEvent> events_;
  Accelerator* device_ = nullptr;
  std::unique_ptr<DeviceEvent> step_event_;  // the step's beginning on the device, and on the host:
  std::chrono::steady_clock::time_point step_begin_;
  std::vector<Span> given_, recorded_;
  std::vector<std::unique_ptr<DeviceEvent>> free_;
  bool records_ = false, replayed_ = false;
  int64_t calls_ = 0;
};

// Times what happens until it goes out of scope; does nothing without a clock.
class OpTimer {
 public:
  OpTimer(OpClock* clock, std::string_view name, const OpWork& work, OpKind kind = OpKind::operation)
      : clock_(clock), call_{name, kind, work} {
    if (clock_ != nullptr) op_ = clock_->open(name);
  }
  ~OpTimer() {
    if (clock_ == nullptr || std::uncaught_exceptions() > exceptions_) return;  // the device may never be done
    clock_->close(std::move(op_), call_);
  }
  OpTimer(const OpTimer&) = delete;
  OpTimer& operator=(const OpTimer&) = delete;

 private:
  OpClock* clock_;
  OpClock::Call call_;
  OpClock::OpenOp op_;
  int exceptions_ = std::uncaught_exceptions();
};

// A part of a step, as a range around its operations: kept where every call is.
class OpRange {
 public:
  OpRange(OpClock* clock, std::string_view name, const OpScope& scope)
      : clock_(clock != nullptr && clock->keeps_events() ? clock : nullptr) {
    if (clock_ == nullptr) return;
    name_ = name;
    outer_ = std::exchange(clock_->scope, scope);
    op_ = clock_->open(name_);
  }
  ~OpRange() {
    if (clock_ == nullptr || std::uncaught_exceptions() > exceptions_) return;
    clock_->close(std::move(op_), {name_, OpKind::range});
    clock_->scope = outer_;
  }
  OpRange(const OpRange&) = delete;
  OpRange& operator=(const OpRange&) = delete;

 private:
  OpClock* clock_;
  std::string name_;
  OpScope outer_;
  OpClock::OpenOp op_;
  int exceptions_ = std::uncaught_exceptions();
};

// The operations of a layer until it goes out of scope.
class OpLayer {
 public:
  OpLayer(OpClock* clock, int64_t layer) : clock_(clock) {
    if (clock_ != nullptr) clock_->scope.layer = static_cast<int32_t>(layer);
  }
  ~OpLayer() {
    if (clock_ != nullptr) clock_->scope.layer = -1;
  }
  OpLayer(const OpLayer&) = delete;
  OpLayer& operator=(const OpLayer&) = delete;

 private:
  OpClock* clock_;
};

}  // namespace tprimat::engine
