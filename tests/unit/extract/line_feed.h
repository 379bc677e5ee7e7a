#pragma once

#include <memory>
#include <string>
#include <vector>

#include "extract/common/setting_names.h"
#include "extract/dialect.h"
#include "extract/scan_text.h"

namespace tprimat::logs {

// Feeds one reader, line by line, and lets nothing pass that no anchor would let pass.
class Feed {
 public:
  explicit Feed(const Dialect& dialect) : anchors_(dialect.anchors), reader_(dialect.make_reader()) {}

  Feed& line(std::string_view text, Figure unix_time = {}, int32_t rank = -1) {
    ++number_;
    bool shown = wants_more_;
    for (const std::string_view anchor : anchors_) shown |= contains(text, anchor);
    LogLine line;
    line.text = text, line.number = number_, line.rank = rank, line.unix_time = unix_time;
    if (shown) wants_more_ = reader_->read_line(line, log_);
    return *this;
  }
  // With the facts that follow from the settings.
  const ExtractedLog& finish() {
    reader_->finish(log_);
    apply_settings(log_.log().settings, log_.facts());
    return log_.log();
  }
  double confidence() const { return reader_->confidence(log_.log()); }

 private:
  std::vector<std::string_view> anchors_;
  std::unique_ptr<LogReader> reader_;
  LogBuilder log_;
  int64_t number_ = 0;
  bool wants_more_ = false;
};

inline bool has_note(const ExtractedLog& log, std::string_view part) {
  for (const std::string& note : log.notes)
    if (contains(note, part)) return true;
  return false;
}

inline const LogEvent* find_event(const ExtractedLog& log, EventKind kind) {
  for (const LogEvent& event : log.events)
    if (event.kind == kind) return &event;
  return nullptr;
}

}  // namespace tprimat::logs
