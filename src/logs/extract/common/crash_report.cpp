#include "extract/common/crash_report.h"

#include <utility>

#include "extract/common/failure_signs.h"
#include "extract/common/log_words.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

constexpr int k_longest_traceback = 500;        // lines
constexpr int k_lines_to_chain = 8;             // of the message, between an exception and "During handling of ..."
constexpr int k_max_strange_report_lines = 60;  // of other processes, in a report

bool is_chain(std::string_view text) {
  return contains(text, "The above exception was the direct cause") || contains(text, "During handling of the above");
}

}  // namespace

void TracebackReader::open() {
  lines_left_ = k_longest_traceback;
  ended_ = false;
}

TracebackReader::Exception TracebackReader::read(std::string_view text) {
  --lines_left_;
  if (ended_ && is_chain(text)) {
    open();
    chained_ = true;
  } else if (const std::string_view found = find_exception(text, true); !found.empty()) {
    lines_left_ = k_lines_to_chain;
    ended_ = true;
    return {found, std::exchange(chained_, false)};
  }
  return {};
}

std::optional<ProcessFailure> read_exit_notice(std::string_view text) {
  const auto code = whole_after(text, "failed (exitcode: ");
  if (!code || *code == 0) return std::nullopt;
  ProcessFailure failure;
  failure.exit_code = code;
  failure.pid = whole_after(text, "(pid: ");
  failure.local_rank = whole_after(text, "local_rank: ");
  return failure;
}

void ChildFailureReport::open() {
  *this = {};
  open_ = true;
}

std::optional<ProcessFailure> ChildFailureReport::take_entry() {
  std::optional<ProcessFailure> entry;
  if (entry_.exit_code && *entry_.exit_code != 0) entry = std::move(entry_);
  entry_ = {};
  in_traceback_ = false;
  return entry;
}

// "  rank      : 5 (local_rank: 5)"
bool ChildFailureReport::read_field(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || !text.starts_with("  ")) return false;
  const std::string_view name = trim(text.substr(0, colon)), value = trim(text.substr(colon + 1));
  if (name == "rank") {
    const auto rank = parse_whole(value);
    if (rank && *rank >= 0 && *rank < 10'000'000) entry_.rank = static_cast<int32_t>(*rank);
  } else if (name == "exitcode") {
    entry_.exit_code = parse_whole(value);
    entry_.pid = whole_after(value, "(pid: ");
  } else if (name == "traceback") {
    in_traceback_ = value.starts_with("Traceback (most");
  } else {
    return name == "time" || name == "host" || name == "error_file";
  }
  seen_entry_ = true;
  entry_.is_root_cause = root_;
  return true;
}

bool ChildFailureReport::may_hold(std::string_view text) {
  for (const std::string_view start : {"  ", "[", "---", "===", "Failures:", "Root Cause"})
    if (text.starts_with(start)) return true;
  return text.empty() || text.ends_with(" FAILED");
}

std::optional<ProcessFailure> ChildFailureReport::read(std::string_view text) {
  const std::string_view words = trim(text);
  if (words.starts_with("=====")) {
    open_ = !seen_entry_;
    return take_entry();
  }
  const bool next_entry = words.starts_with("[") && words.ends_with("]:");
  if (next_entry || words.starts_with("-----") || words.starts_with("Root Cause")) {
    root_ |= words.starts_with("Root Cause");
    strange_lines_ = 0;
    return take_entry();
  }
  if (in_traceback_ && text.starts_with("  ") && !text.starts_with("    ")) {
    if (const auto error = find_exception(words, true); !error.empty()) entry_.error = quote_text(error);
  }
  if (in_traceback_ || read_field(text)) {
    strange_lines_ = text.starts_with("  ") ? 0 : strange_lines_ + 1;
  } else {
    ++strange_lines_;
  }
  return strange_lines_ > k_max_strange_report_lines ? finish() : std::nullopt;
}

std::optional<ProcessFailure> ChildFailureReport::finish() {
  open_ = false;
  return take_entry();
}

}  // namespace tprimat::logs
