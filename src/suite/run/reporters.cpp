#include "run/reporters.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

constexpr size_t k_recent_steps = 10;
constexpr size_t k_bar_width = 20;

constexpr const char* k_redraw = "\r\x1b[K";  // start of the line, and clear it

std::string opening(const PlannedRun& run, size_t number, size_t of) {
  return fmt::format("[{}/{}] {}\n      log: {}\n", number, of, printable(describe(run)), printable(run.plan.log_path));
}

std::string closing(const RunOutcome& outcome) {
  std::string text =
      outcome.resumed ? "      resumed: a complete result exists" : fmt::format("      {}", enum_name(outcome.status));
  if (outcome.reason) text += ": " + printable(*outcome.reason);
  if (outcome.tokens_per_second) text += fmt::format(", {} tokens/s", format_count(*outcome.tokens_per_second));
  return text + "\n";
}

std::string profile_closing(const ProfileOutcome& outcome) {
  if (outcome.resumed) return "      resumed: the profile exists\n";
  std::string text = fmt::format("      {}", enum_name(outcome.status));
  if (outcome.reason) text += ": " + printable(*outcome.reason);
  if (outcome.trace) text += ": " + printable(*outcome.trace);
  return text + "\n";
}

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

void PlainReporter::run_started(const PlannedRun& run, size_t number, size_t of) {
  sink_(opening(run, number, of));
  last_line_ = SteadyClock::now();
  last_step_ = 0;
}

void PlainReporter::progressed(const Progress& progress) {
  const double late = progress.late_seconds.value_or(0.0);
  const bool is_news = progress.step != last_step_ || late > 2.0 * std::max(last_late_, 1.0);
  if (seconds_since(last_line_) < interval_seconds_ || !is_news) return;
  sink_("      " + render_progress_line(progress) + "\n");
  last_line_ = SteadyClock::now();
  last_step_ = progress.step;
  last_late_ = late;
}

void PlainReporter::run_ended(const RunOutcome& outcome) { sink_(closing(outcome)); }
void PlainReporter::profile_ended(const ProfileOutcome& outcome) { sink_(profile_closing(outcome)); }
void PlainReporter::noted(const std::string& sentence) { sink_("      " + printable(sentence) + "\n"); }

void TerminalReporter::run_started(const PlannedRun& run, size_t number, size_t of) { sink_(opening(run, number, of)); }

void TerminalReporter::progressed(const Progress& progress) {
  const size_t width = width_();
  sink_(k_redraw + render_progress_bar(progress, width > 1 ? width - 1 : width));
}

void TerminalReporter::run_ended(const RunOutcome& outcome) { sink_(k_redraw + closing(outcome)); }
void TerminalReporter::profile_ended(const ProfileOutcome& outcome) { sink_(k_redraw + profile_closing(outcome)); }
void TerminalReporter::noted(const std::string& sentence) { sink_(k_redraw + ("      " + printable(sentence) + "\n")); }

}  // namespace tprimat::suite
