#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device.h"

namespace tprimat {

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

class OpClock {
 public:
  void add(std::string_view name, const OpTotal& total);
  void clear() { totals_.clear(); }

  // From now on every call is kept, not only the totals.
  void keep_events() { keeps_events_ = true; }
  void keep(OpEvent event) {
    if (keeps_events_) events_.push_back(std::move(event));
  }
  bool keeps_events() const { return keeps_events_; }

  // Of a device that works on after it was told to: times are taken when it has done what it was given.
  void wait_for(Device* device) { device_ = device; }
  std::chrono::steady_clock::time_point now() const {
    if (device_ != nullptr) device_->finish();
    return std::chrono::steady_clock::now();
  }
  const std::vector<OpEvent>& events() const { return events_; }

  const std::map<std::string, OpTotal, std::less<>>& totals() const { return totals_; }

 private:
  std::map<std::string, OpTotal, std::less<>> totals_;
  bool keeps_events_ = false;
  std::vector<OpEvent> events_;
  Device* device_ = nullptr;
};

// Times what happens until it goes out of scope; does nothing without a clock.
class OpTimer {
 public:
  struct Work {
    double flops = 0, bytes = 0;
  };
  OpTimer(OpClock* clock, std::string_view name, Work work) : clock_(clock), name_(name), work_(work) {
    if (clock_ != nullptr) start_ = clock_->now();
  }
  ~OpTimer() {
    if (clock_ == nullptr || std::uncaught_exceptions() > exceptions_) return;  // the device may never be done
    const auto end = clock_->now();
    const std::chrono::duration<double> passed = end - start_;
    if (clock_->keeps_events()) clock_->keep({std::string(name_), work_.flops > 0, start_, end});
    clock_->add(name_, {1, passed.count(), work_.flops, work_.bytes});
  }
  OpTimer(const OpTimer&) = delete;
  OpTimer& operator=(const OpTimer&) = delete;

 private:
  OpClock* clock_;
  std::string_view name_;
  Work work_;
  int exceptions_ = std::uncaught_exceptions();
  std::chrono::steady_clock::time_point start_;
};

}  // namespace tprimat
