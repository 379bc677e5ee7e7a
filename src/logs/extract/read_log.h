#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "extract/anchor_scanner.h"
#include "extract/dialect.h"
#include "extract/line_cleaner.h"
#include "extract/log_source.h"
#include "extract/reader_set.h"

namespace tprimat::logs {

struct ReadOptions {
  std::string format;     // id of the dialect; empty: it is detected
  int64_t max_bytes = 0;  // of a log of lines that are read, uncompressed; 0: all
};

// One log, read. `dialect` is null if no format was recognised: `log` then holds what the common readers found (events,
// machine facts, settings), and `why_nothing` explains it.
struct ReadLog {
  ExtractedLog log;
  const Dialect* dialect = nullptr;
  bool forced = false;      // by --format: nothing was detected
  double confidence = 0.0;  // see LogReader::confidence
  std::string runner_up;    // the second-best dialect; empty: none
  std::string why_nothing;  // for a log without a single step
  int64_t lines = 0, bytes = 0;
  std::vector<ReadLog> earlier;      // earlier runs of the same log, with other settings
  std::vector<std::string> differs;  // differences from the run before, as phrases
  int64_t attempts = 1;              // of all runs
  bool selected = false;             // one attempt was selected
};

// Reads the log in one pass, whatever its size and compression ("-" is standard input). Throws Error for a file that
// cannot be opened, and for a document of a known kind that is damaged.
ReadLog read_log(const std::filesystem::path& path, const ReadOptions& options);
ReadLog read_log_text(std::string bytes, const ReadOptions& options);

// One log on its way through the readers. All dialects read at first; once one is certain, the others stop.
//
// A log may hold several runs. Lines after a step that state facts but report no step are held back and shown to a
// fresh set of readers. The next step decides: where the facts of the two sets differ, the fresh readers go on with a
// run of their own, as if the log began there; else the current readers get the lines.
class LogReading {
 public:
  explicit LogReading(const ReadOptions& options);
  void add_lines(std::string_view lines);  // whole lines, each with its line end
  ReadLog finish();

 private:
  struct HeldLine {
    std::string raw;
    int64_t number = 0;
    uint64_t readers = 0;
    bool is_cut = false;
    int32_t rank = -1;
    bool is_read = false;  // by now_ too
  };
  struct Shown {  // a line, and the anchors found in it
    std::string_view raw;
    uint64_t readers = 0, anchors = 0;  // a bit each; anchors beyond 64 share bits
  };
  void build_scanner();
  void settle();  // drops the candidates that can no longer win
  bool waits() const { return next_ ? next_->waits() || (held_.empty() && now_.waits()) : now_.waits(); }
  void read_line(Shown line);
  void show(const Shown& line);
  bool may_begin_run(const Shown& shown, const LogLine& line);
  void hold(const Shown& line);
  void decide();
  void release();
  void end_held();
  ReadLog finish_run(ReaderSet& readers);

  ReaderSet now_;                  // readers of the current run
  std::optional<ReaderSet> next_;  // readers of a possible next run, from the last step on
  std::vector<HeldLine> held_;     // shown to next_ alone
  size_t held_bytes_ = 0;
  std::vector<ReadLog> earlier_;
  std::vector<std::string> differs_;                       // of the current run from the one before
  std::unordered_set<uint64_t> step_lines_, other_lines_;  // by anchors: lines with steps alone, with facts too

  std::optional<AnchorScanner> scanner_;
  std::vector<uint64_t> anchor_readers_;  // by anchor: a bit per candidate
  std::vector<AnchorHit> hits_;
  LineCleaner cleaner_;
  std::string stripped_;  // current lines without escape codes
  bool settled_ = false;
  bool is_cut_ = false;      // the current line has no end
  int64_t cut_line_ = -1;    // the last one, where the log ends within it
  int64_t line_number_ = 1;  // of the line at the cursor
  int64_t bytes_ = 0;
};

}  // namespace tprimat::logs
