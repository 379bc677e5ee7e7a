#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "extract/anchor_scanner.h"
#include "extract/dialect.h"
#include "extract/line_cleaner.h"
#include "extract/log_source.h"

namespace tprimat {

struct ReadOptions {
  std::string format;  // id of the dialect; empty: it is detected
};

// One log, read. `dialect` is null when no format was recognised: `log` then holds what every log tells (events,
// machine facts, settings), and `why_nothing` says why there is no more.
struct ReadLog {
  ExtractedLog log;
  const Dialect* dialect = nullptr;
  bool forced = false;      // by --format: nothing was detected
  double confidence = 0.0;  // see LogReader::confidence
  std::string runner_up;    // the dialect that fitted second best; empty: none did
  std::string why_nothing;  // for a log without a single step
  int64_t lines = 0, bytes = 0;
};

// Reads the log in one pass, whatever its size and compression ("-" is standard input). Throws Error for a file that
// cannot be opened, and for a document of a known kind that is damaged.
ReadLog read_log(const std::filesystem::path& path, const ReadOptions& options);
ReadLog read_log_text(std::string bytes, const ReadOptions& options);

// One log on its way through the readers. All dialects read at first; as soon as one is certain the others stop.
class LogReading {
 public:
  explicit LogReading(const ReadOptions& options);
  void add_lines(std::string_view lines);  // whole lines, each with its line end
  ReadLog finish();

 private:
  struct Candidate {
    const Dialect* dialect = nullptr;
    std::unique_ptr<LogReader> reader;
    std::shared_ptr<LogBuilder> log;  // the common readers share one
    bool wants_more = false;          // the next line of `wanted_rank`, whatever it holds
    int32_t wanted_rank = -1;
    int patience = 0;  // lines of other ranks it still waits through
  };
  void add_candidate(const Dialect& dialect, std::shared_ptr<LogBuilder> log);
  void build_scanner();
  void settle();  // drops the candidates that cannot win any more
  bool read_copy(std::string_view raw, uint64_t readers);
  void read_line(std::string_view raw, uint64_t readers);
  void show(std::string_view raw, uint64_t readers);
  Candidate* best();

  std::vector<Candidate> candidates_;  // the common ones first
  size_t common_count_ = 0;
  std::shared_ptr<LogBuilder> common_log_;
  std::optional<AnchorScanner> scanner_;
  std::vector<uint64_t> anchor_readers_;  // by anchor: a bit per candidate
  std::vector<AnchorHit> hits_;
  LineCleaner cleaner_;
  std::string runner_up_;
  bool settled_ = false, anybody_waits_ = false;
  bool is_cut_ = false;      // the line at hand has no end
  int64_t line_number_ = 1;  // of the line at the cursor
  int64_t bytes_ = 0;
};

}  // namespace tprimat
