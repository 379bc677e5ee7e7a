#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
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

// `work` runs on `threads` threads.
template <class Work>
Measured measure(const MeasuringRule& rule, int threads, Work&& work) {
  measure_window(rule.warm_seconds, threads, work);
  std::vector<Window> windows;
  const auto start = SteadyClock::now();
  do {
    windows.push_back(measure_window(rule.window_seconds, threads, work));
  } while (static_cast<int>(windows.size()) < rule.least_windows ||
           (!is_quiet(windows, rule) && seconds_since(start) < rule.longest_seconds));
  Measured measured = summarise_windows(windows);
  measured.ended_by = is_quiet(windows, rule) ? EndedBy::noise : EndedBy::time;
  return measured;
}

}  // namespace tprimat::engine
