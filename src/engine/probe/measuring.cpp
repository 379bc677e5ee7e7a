#include "probe/measuring.h"

#include <sys/resource.h>

#include <span>

#include "base/check.h"
#include "stats/descriptive.h"

namespace tprimat::engine {
namespace {

std::vector<double> seconds_of(const std::vector<Window>& windows) {
  std::vector<double> seconds;
  for (const Window& window : windows) seconds.push_back(window.seconds);
  return seconds;
}

double relative_noise_of(const std::vector<double>& seconds) {
  return k_mad_to_sigma * median_absolute_deviation(seconds) / median(seconds);
}

bool has_slowed(const std::vector<double>& seconds) {
  if (seconds.size() < 4) return false;
  const std::span<const double> all(seconds);
  const size_t half = seconds.size() / 2;
  return median(all.subspan(half)) > 1.05 * median(all.first(half));
}

}  // namespace

bool is_quiet(const std::vector<Window>& windows, const MeasuringRule& rule) {
  return relative_noise_of(seconds_of(windows)) <= rule.noise;
}

Measured summarise_windows(const std::vector<Window>& windows) {
  CHECK(!windows.empty());
  const std::vector<double> seconds = seconds_of(windows);
  const auto fastest = std::min_element(windows.begin(), windows.end(),
                                        [](const Window& a, const Window& b) { return a.seconds < b.seconds; });
  Measured measured;
  measured.fastest_seconds = fastest->seconds;
  measured.cpu_share = fastest->cpu_share;
  measured.median_seconds = median(seconds);
  measured.relative_noise = relative_noise_of(seconds);
  measured.windows = static_cast<int64_t>(windows.size());
  measured.slowed = has_slowed(seconds);
  return measured;
}

double process_cpu_seconds() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace tprimat::engine
