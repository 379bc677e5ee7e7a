#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "extract/log_builder.h"

namespace tprimat::logs {

// Keeps one event per cause: reports of other ranks soon after that differ only in numbers are merged.
class CauseLog {
 public:
  // Its index among the events of the log; nothing if it was only counted.
  std::optional<size_t> add(LogEvent event, LogBuilder& log);
  std::optional<size_t> add(EventKind kind, const LogLine& line, std::string_view text, LogBuilder& log);

 private:
  std::unordered_map<std::string, size_t> known_;
};

LogEvent make_event(EventKind kind, const LogLine& line, std::string_view text);

// One more report of the same, by `rank` in `line`.
void add_report(LogEvent& event, int32_t rank, int64_t line);

}  // namespace tprimat::logs
