#pragma once

#include <functional>
#include <string_view>

#include "base/clock.h"
#include "run/reporter.h"

namespace tprimat::suite {

using TextSink = std::function<void(std::string_view text)>;

// One line per event, and every few seconds one on the progress: for files and pipes.
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
  double last_late_ = 0.0;  // seconds late when that was said last
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

// Says nothing.
class SilentReporter : public Reporter {
 public:
  void run_started(const PlannedRun&, size_t, size_t) override {}
  void progressed(const Progress&) override {}
  void run_ended(const RunOutcome&) override {}
  void noted(const std::string&) override {}
};

}  // namespace tprimat::suite
