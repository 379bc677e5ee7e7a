#include "run/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/format.h"

namespace tprimat::suite {
namespace {

constexpr size_t k_recent_steps = 10;
constexpr size_t k_bar_width = 20;

}  // namespace

Progress measure_progress(const std::vector<StepRecord>& done, int64_t steps, int64_t tokens_per_step) {
  Progress progress;
  progress.steps = steps;
  if (done.empty()) return progress;
  progress.step = done.back().step;
  progress.loss = done.back().loss;
  const size_t usable = done.size() > 1 ? done.size() - 1 : 1;
  const size_t count = std::min(usable, k_recent_steps);
  double seconds = 0.0, timed = 0.0;
  for (size_t i = done.size() - count; i < done.size(); ++i)
    if (done[i].time_seconds > 0.0) seconds += done[i].time_seconds, timed += 1.0;
  if (!(seconds > 0.0)) return progress;
  progress.tokens_per_second = static_cast<double>(tokens_per_step) * timed / seconds;
  const auto left = static_cast<double>(std::max<int64_t>(0, steps - progress.step));
  progress.remaining_seconds = left * seconds / timed;
  return progress;
}

std::string format_wait(double seconds) {
  return seconds < 59.5 ? fmt::format("{:.0f} s", seconds) : format_duration(seconds);
}

std::string render_progress_line(const Progress& progress) {
  std::string text = fmt::format("step {}/{}", progress.step, progress.steps);
  if (progress.step == 0) text += "  " + format_duration(progress.elapsed_seconds);
  if (progress.late_seconds)
    text += "  no step for " + format_wait(*progress.late_seconds);
  else if (progress.remaining_seconds)
    text += "  ETA " + format_duration(*progress.remaining_seconds);
  if (progress.tokens_per_second) text += "  " + format_count(*progress.tokens_per_second) + " tokens/s";
  if (progress.loss) text += fmt::format("  loss {:.4f}", *progress.loss);
  if (progress.memory_bytes) text += "  " + format_gb(*progress.memory_bytes);
  if (progress.power_watts) text += fmt::format("  {:.0f} W", *progress.power_watts);
  return text;
}

std::string render_progress_bar(const Progress& progress, size_t width) {
  const double share =
      progress.steps > 0 ? static_cast<double>(progress.step) / static_cast<double>(progress.steps) : 0.0;
  const auto filled = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(k_bar_width));
  const std::string text = render_progress_line(progress);
  const std::string bar = "[" + std::string(filled, '#') + std::string(k_bar_width - filled, '.') + "] ";
  return (bar.size() + text.size() <= width ? bar + text : text).substr(0, width);
}

}  // namespace tprimat::suite
