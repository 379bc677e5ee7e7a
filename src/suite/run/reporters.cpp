#include "run/reporters.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"

namespace tprimat::suite {
namespace {

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
