#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "device/device.h"
#include "result/probe_report.h"

namespace tprimat::engine {

// How one figure is measured (the rules of NVIDIA's nvbench, for a processor): the work is repeated without a pause for
// warm_seconds; then in windows, each at least window_seconds long, until their times agree to within `noise` or
// longest_seconds are over. At least least_windows in any case.
struct MeasuringRule {
  double warm_seconds = 0.05;
  double window_seconds = 0.05;
  double longest_seconds = 0.45;
  double noise = 0.01;
  int least_windows = 4;
};

struct Window {
  double seconds = 0;  // of one repetition
  double cpu_share = 1;
};
// The windows must not be empty.
Measured summarise_windows(const std::vector<Window>& windows);
bool is_quiet(const std::vector<Window>& windows, const MeasuringRule& rule);

// User and system time of all threads of this process, s.
double process_cpu_seconds();

// Repeats `work` until the window is over.
template <class Work>
Window measure_window(double seconds, int threads, Work&& work) {
  const double cpu_start = process_cpu_seconds();
  const auto start = SteadyClock::now();
  double elapsed = 0;
  int64_t repetitions = 0;
  do {
    work();
    ++repetitions;
    elapsed = seconds_since(start);
  } while (elapsed < seconds);
  // Threads that wait for each other spin, so idle time does not lower the share, only other processes do.
  const double share = (process_cpu_seconds() - cpu_start) / (elapsed * threads);
  return {elapsed / static_cast<double>(repetitions), std::min(share, 1.0)};
}

// Asks `next_window` for windows until the rule ends it; `elapsed` returns the seconds that count.
template <class NextWindow, class Elapsed>
Measured measure_windows(const MeasuringRule& rule, NextWindow&& next_window, Elapsed&& elapsed) {
  std::vector<Window> windows;
  do {
    windows.push_back(next_window());
  } while (static_cast<int>(windows.size()) < rule.least_windows ||
           (!is_quiet(windows, rule) && elapsed() < rule.longest_seconds));
  Measured measured = summarise_windows(windows);
  measured.ended_by = is_quiet(windows, rule) ? EndedBy::noise : EndedBy::time;
  return measured;
}

// `work` runs on `threads` threads.
template <class Work>
Measured measure(const MeasuringRule& rule, int threads, Work&& work) {
  measure_window(rule.warm_seconds, threads, work);
  const auto start = SteadyClock::now();
  return measure_windows(
      rule, [&] { return measure_window(rule.window_seconds, threads, work); }, [&] { return seconds_since(start); });
}

// Zeroed memory of a device that goes with this.
class DeviceBytes {
 public:
  DeviceBytes(Device& device, size_t bytes) : device_(device), bytes_(bytes), data_(device.allocate(bytes)) {}
  ~DeviceBytes() { device_.release(data_, bytes_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  Device& device_;
  size_t bytes_;
  std::byte* data_;
};

}  // namespace tprimat::engine
