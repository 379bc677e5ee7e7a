#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "extract/log_builder.h"
#include "extract/log_line.h"
#include "spec/names.h"

namespace tprimat::logs {

// Reads one log, line by line. It sees only lines that hold one of its dialect's anchors, in the order of the log.
class LogReader {
 public:
  virtual ~LogReader() = default;

  // True: the record of this line continues, so pass the next line of the same rank whatever it holds.
  virtual bool read_line(const LogLine& line, LogBuilder& log) = 0;
  virtual void finish(LogBuilder&) {}  // after the last line

  // True: the raw line (without its line end) repeats the previous line for another rank, which is noted. A log of many
  // ranks is mostly such lines.
  virtual bool read_copy(std::string_view, LogBuilder&) { return false; }

  // Number of steps that wait for a later line.
  virtual int64_t steps_waiting() const { return 0; }

  // Confidence that the log is of this dialect: 0 nothing fits; up to 0.6 the records fit but occur in several
  // dialects; 0.9 and more: it has marks of this dialect alone.
  virtual double confidence(const ExtractedLog&) const { return 0; }
};

// A field that a dialect reads, for `extract --list-formats` and docs/formats.md.
struct FieldNote {
  std::string_view name;  // as in ExtractedStep: "time_seconds"
  std::string_view from;  // what the log calls it: "elapsed time per iteration (ms)"; "derived: ..." when it is not
                          // printed
};

// One log format. A dialect is one file in dialects/, one entry in dialects.cpp and one fixture. It has either anchors
// and a line reader, or a test for whole documents and a reader of them.
struct Dialect {
  std::string_view id;        // "megatron"
  std::string_view title;     // "Megatron-LM"
  std::string_view versions;  // seen in real logs: "2021 to core 0.16"
  std::optional<Framework> framework = std::nullopt;
  std::vector<FieldNote> fields = {};
  int64_t counts_from = 1;          // number of the first step of a training
  bool one_optimizer = true;        // so a skipped update is a step without an update
  bool evaluation_in_times = true;  // a step's time may hold an evaluation that was reported before it
  bool labels_own_pauses = false;   // the reader marks the steps whose time holds an evaluation or a checkpoint

  // A line without one of these (four bytes or more each, as rare as possible) is never shown to the reader.
  std::vector<std::string_view> anchors = {};
  std::unique_ptr<LogReader> (*make_reader)() = nullptr;

  // `head` is the first 64 KiB or the whole document. `read_document` throws Error for a document it cannot use.
  bool (*is_document)(std::string_view head) = nullptr;
  void (*read_document)(std::string_view whole, LogBuilder& log) = nullptr;
};

// Both lists joined.
template <class T>
std::vector<T> both(std::vector<T> first, const std::vector<T>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace tprimat::logs
