#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "extract/dialect.h"
#include "extract/stated_facts.h"

namespace tprimat::logs {

// Readers of one run in a log: the common ones, which share a builder, then those of the possible dialects. A line goes
// to the readers whose bit is set in `readers`, and to those that wait for the next line of a record.
class ReaderSet {
 public:
  struct Candidate {
    const Dialect* dialect = nullptr;
    std::unique_ptr<LogReader> reader;
    std::shared_ptr<LogBuilder> log;
    bool wants_more = false;  // the next line of `wanted_rank`
    int32_t wanted_rank = -1;
    int patience = 0;  // lines of other ranks before it stops waiting
  };
  struct Winner {
    Candidate* candidate = nullptr;  // null: none fits
    double confidence = 0;
    std::string runner_up;
  };

  explicit ReaderSet(std::vector<const Dialect*> dialects);
  const std::vector<const Dialect*>& dialects() const { return dialects_; }
  std::map<std::string_view, uint64_t> anchors() const;  // with a bit per reader that asks for it

  // `is_cut`: the line has no end, so a number at its end may go on.
  void read_line(LogLine line, uint64_t readers, bool is_cut);
  bool read_copy(std::string_view raw, uint64_t readers);  // see LogReader::read_copy; of a single dialect
  bool waits() const { return anybody_waits_; }

  Winner best();
  void keep_only(const Candidate& winner);

  int64_t steps() const;  // steps of all dialects, including incomplete ones
  int64_t steps_of(const Dialect& dialect) const;
  bool states_facts() const;  // or settings
  StatedFacts facts_by(const Dialect& dialect) const;
  void forget_end_of_run();  // see LogBuilder
  void announce_attempt();
  void set_max_steps(const Dialect& dialect, std::optional<int64_t> steps);  // where they are known

  // A restart of the same run stated these settings again: its values replace the old ones.
  void adopt_settings(const ReaderSet& later);

  void finish();  // after the last line
  // The log of the winner merged with that of the common readers, or the latter alone without a winner.
  ExtractedLog take(const Winner& winner);
  std::vector<LogEvent> take_common_events();

 private:
  const Candidate* find(const Dialect& dialect) const;  // null: it was dropped

  std::vector<const Dialect*> dialects_;
  std::vector<Candidate> candidates_;  // the common ones first
  size_t common_count_ = 0;
  std::shared_ptr<LogBuilder> common_log_;
  bool anybody_waits_ = false;
  std::optional<int64_t> ranks_;  // by the lines' prefixes; no line begins a run by having one
};

}  // namespace tprimat::logs
