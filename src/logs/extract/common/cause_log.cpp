#include "extract/common/cause_log.h"

#include <algorithm>

#include "extract/common/log_words.h"

namespace tprimat::logs {
namespace {

constexpr size_t k_max_causes = 4096;
constexpr size_t k_max_named_ranks = 100;
constexpr int64_t k_near = 1000;  // lines from one report to the next of the same event
constexpr size_t k_key_length =
    120;  // bytes of the text that distinguish causes; numbers at the end may shift the rest

}  // namespace

LogEvent make_event(EventKind kind, const LogLine& line, std::string_view text) {
  LogEvent event;
  event.kind = kind;
  event.line = line.number;
  event.rank = line.rank;
  event.text = quote_text(text);
  return event;
}

void add_report(LogEvent& event, int32_t rank, int64_t line) {
  if (event.reports < std::numeric_limits<int32_t>::max()) ++event.reports;
  event.last_line = std::max(event.last_line, line);
  const auto place = std::lower_bound(event.ranks.begin(), event.ranks.end(), rank);
  const bool known = rank < 0 || (place != event.ranks.end() && *place == rank);
  if (!known && event.ranks.size() < k_max_named_ranks) event.ranks.insert(place, rank);
}

std::optional<size_t> CauseLog::add(LogEvent event, LogBuilder& log) {
  std::string key = std::to_string(static_cast<int>(event.kind)) + ' ';
  key += without_numbers(std::string_view(event.text).substr(0, k_key_length));
  const auto known = known_.find(key);
  if (known != known_.end() && known->second < log.events().size()) {
    LogEvent& kept = log.events()[known->second];
    if (event.line - std::max(kept.line, kept.last_line) <= k_near) {
      add_report(kept, event.rank, event.line);
      if (!kept.seconds) kept.seconds = event.seconds;
      log.count_event(event.kind);
      return known->second;
    }
  }
  const size_t index = log.events().size();
  if (event.rank >= 0) event.ranks = {event.rank};
  log.add_event(std::move(event));
  if (log.events().size() == index) return std::nullopt;
  if (known_.size() >= k_max_causes) known_.clear();
  known_[std::move(key)] = index;
  return index;
}

std::optional<size_t> CauseLog::add(EventKind kind, const LogLine& line, std::string_view text, LogBuilder& log) {
  return add(make_event(kind, line, text), log);
}

}  // namespace tprimat::logs
