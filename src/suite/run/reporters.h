#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "result/step_record.h"
#include "run/outcome.h"

namespace tprimat::suite {

// Progress of a run. Unknown figures are absent.
struct Progress {
  int64_t step = 0, steps = 0;
  double elapsed_seconds = 0.0;
  std::optional<double> remaining_seconds, tokens_per_second, loss, memory_bytes, power_watts;
  std::optional<double> late_seconds = {};  // since the last step, once the next one is overdue
};

// From the steps so far: rates are over the last ten steps, without the first step of the run if there are others.
Progress measure_progress(const std::vector<StepRecord>& done, int64_t steps, int64_t tokens_per_step);

// "35 s", "2 min 05 s": how long one has been waiting.
std::string format_wait(double seconds);

// "step 12/100  ETA 1 min 05 s  13 400 tokens/s  loss 4.812  2.10 GB  212 W"
std::string render_progress_line(const Progress& progress);

// The same behind a bar, in at most `width` columns.
std::string render_progress_bar(const Progress& progress, size_t width);

// Receives the events of a suite; implementations decide what to show.
class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void run_started(const PlannedRun& run, size_t number, size_t of) = 0;
  virtual void progressed(const Progress& progress) = 0;  // several times a second
  virtual void run_ended(const RunOutcome& outcome) = 0;
  virtual void profile_ended(const ProfileOutcome&) {}
  virtual void noted(const std::string& sentence) = 0;
};

using TextSink = std::function<void(std::string_view text)>;

// One line per event, and a progress line every few seconds: for files and pipes.
class PlainReporter : public Reporter {
 public:
  explicit PlainReporter(TextSink sink, double interval_seconds = 5.0)
      : sink_(std::move(sink)), interval_seconds_(interval_seconds) {}
  void run_started(const PlannedRun& run, size_t number, size_t of) override;
  void progressed(const Progress& progress) override;
  void run_ended(const RunOutcome& outcome) override;
  void profile_ended(const ProfileOutcome& outcome) override;
  void noted(const std::string& sentence) override;

 private:
  TextSink sink_;
  double interval_seconds_;
  SteadyClock::time_point last_line_ = SteadyClock::now();
  int64_t last_step_ = 0;
  double last_late_ = 0.0;  // seconds late at the last message
};

// A bar that is redrawn in place: for terminals.
class TerminalReporter : public Reporter {
 public:
  TerminalReporter(TextSink sink, std::function<size_t()> width) : sink_(std::move(sink)), width_(std::move(width)) {}
  void run_started(const PlannedRun& run, size_t number, size_t of) override;
  void progressed(const Progress& progress) override;
  void run_ended(const RunOutcome& outcome) override;
  void profile_ended(const ProfileOutcome& outcome) override;
  void noted(const std::string& sentence) override;

 private:
  TextSink sink_;
  std::function<size_t()> width_;
};

// Prints nothing.
class SilentReporter : public Reporter {
 public:
  void run_started(const PlannedRun&, size_t, size_t) override {}
  void progressed(const Progress&) override {}
  void run_ended(const RunOutcome&) override {}
  void noted(const std::string&) override {}
};

}  // namespace tprimat::suite
