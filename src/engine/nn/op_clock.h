#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/accelerator.h"

namespace tprimat::engine {

// Where a step's time goes, by operation.
struct OpTotal {
  int64_t calls = 0;
  double seconds = 0;
  double flops = 0;  // 0 for operations that are bound by memory
  double bytes = 0;  // read and written, each operand once
};

// One call of an operation.
struct OpEvent {
  std::string name;
  bool is_product = false;  // of matrices
  std::chrono::steady_clock::time_point begin, end;
};

// Times operations. On a CPU an operation has ended when its call returns. GPU kernels run asynchronously: the clock
// records events around each operation and reads them after the step, without extra synchronization. Events in
// recorded work are recorded anew at each replay. Operations that are launched one by one are also ranges of the
// vendor's profiler (NVTX, ROCTX).
class OpClock {
 public:
  void add(std::string_view name, const OpTotal& total);
  void clear() { totals_.clear(); }

  // From now on every call is kept, not only the totals.
  void keep_events() { keeps_events_ = true; }
  const std::vector<OpEvent>& events() const { return events_; }
  const std::map<std::string, OpTotal, std::less<>>& totals() const { return totals_; }

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
  void close(OpenOp op, std::string_view name, double flops, double bytes);

 private:
  struct Span {
    std::string name;
    double flops, bytes;
    std::unique_ptr<DeviceEvent> first, last;
  };
  void count(const Span& span);
  std::unique_ptr<DeviceEvent> mark();

  std::map<std::string, OpTotal, std::less<>> totals_;
  bool keeps_events_ = false, times_ = true;
  std::vector<OpEvent> events_;
  Accelerator* device_ = nullptr;
  std::unique_ptr<DeviceEvent> step_event_;  // the step's beginning on the device, and on the host:
  std::chrono::steady_clock::time_point step_begin_;
  std::vector<Span> given_, recorded_;
  std::vector<std::unique_ptr<DeviceEvent>> free_;
  bool records_ = false, replayed_ = false;
};

// Times what happens until it goes out of scope; does nothing without a clock.
class OpTimer {
 public:
  struct Work {
    double flops = 0, bytes = 0;
  };
  OpTimer(OpClock* clock, std::string_view name, Work work) : clock_(clock), name_(name), work_(work) {
    if (clock_ != nullptr) op_ = clock_->open(name_);
  }
  ~OpTimer() {
    if (clock_ == nullptr || std::uncaught_exceptions() > exceptions_) return;  // the device may never be done
    clock_->close(std::move(op_), name_, work_.flops, work_.bytes);
  }
  OpTimer(const OpTimer&) = delete;
  OpTimer& operator=(const OpTimer&) = delete;

 private:
  OpClock* clock_;
  std::string_view name_;
  Work work_;
  OpClock::OpenOp op_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace tprimat::engine
