#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "extract/extracted_log.h"
#include "extract/log_line.h"

namespace tprimat::logs {

// Collects the records of a dialect. Ranks that report the same step, and records printed twice, become one step; a
// rank that goes back to an earlier step begins a new attempt (a restart).
class LogBuilder {
 public:
  // A new record for `step` with line, rank and time stamp from the line. Fill in its figures, then add() it.
  static ExtractedStep start_step(const LogLine& line, int64_t step);

  // Merges the record: with the same step of the same attempt (the first report stays, gaps are filled, the highest
  // memory wins), or appends it. Gives the step it became part of; valid until the next add().
  ExtractedStep& add(const ExtractedStep& record);

  // One more rank (or the same once more) repeats the line of the step added last. False if that rank is at another
  // step, so that the line must be read.
  bool add_copy(int32_t rank);

  // The next record begins another attempt, or another run in the same log, even if its step does not go back.
  void begin_attempt(const ExtractedStep& record);

  // The log announced a restart: the next record with a later step belongs to another attempt.
  void announce_attempt() { announced_ = true; }

  ExtractedStep* last();              // the step added last; null before the first
  int64_t last_step() const;          // its number; -1 before the first
  ExtractedStep* find(int64_t step);  // in the current attempt; null when it was not reported

  void add_event(EventKind kind, const LogLine& line, std::string_view text);
  void add_event(LogEvent event);
  void add_evaluation(const LogLine& line, int64_t step, Figure loss, std::string text, Figure seconds = {});
  void forget_end_of_run();  // drops all but facts and settings, which belong to the run before
  void forget_settings() { log_.settings.clear(), totals_.clear(); }  // another run states its own
  void count_event(EventKind kind) { ++log_.event_counts[kind]; }     // one more like a kept one
  std::vector<LogEvent>& events() { return log_.events; }             // for additions from later lines
  void add_memory(int32_t rank, MemoryKind kind, double gb);          // keeps the highest
  void note(const std::string& sentence);                             // repetitions are dropped
  void set(const std::string& key, const std::string& value);  // a setting as the framework prints it; the first stays
  void drop_setting(const std::string& key, const std::string& why);       // the framework left it out; the first stays
  void replace_settings(const std::map<std::string, std::string>& later);  // overwrites the values of existing keys
  void set_total(const std::string& key, const std::string& value);        // from the end of a run
  LoggedFacts& facts() { return log_.facts; }
  void set_time_to_train(std::optional<TimeToTrain> time) { log_.time_to_train = std::move(time); }

  void mark_start() { started_ = true; }  // a line that only the start of a run prints
  bool states_facts() const;              // or settings other than totals, or a start

  const ExtractedLog& log() const { return log_; }
  ExtractedLog take() { return std::move(log_); }

 private:
  struct RankProgress {
    int64_t last_step = -1;
    int16_t attempt = 0;
  };
  ExtractedStep& ignore(const ExtractedStep& record);

  ExtractedLog log_;
  RankProgress& progress_of(int32_t rank);

  std::vector<RankProgress> low_ranks_;  // -1 to 8190
  std::unordered_map<int32_t, RankProgress> high_ranks_;
  size_t attempt_start_ = 0;         // index of the current attempt's first step
  std::vector<std::string> totals_;  // keys
  int16_t attempt_ = 0;
  bool announced_ = false, started_ = false;
  size_t last_ = 0;        // index of the step added last
  ExtractedStep ignored_;  // stands in for steps that are not kept
};

}  // namespace tprimat::logs
