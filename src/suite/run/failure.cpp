#include "run/failure.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/error.h"
#include "extract/common/failure_signs.h"
#include "extract/common/log_words.h"
#include "extract/read_log.h"

namespace tprimat::suite {
namespace {

constexpr size_t k_longest_quote = 200;
constexpr int64_t k_max_read = int64_t{8} << 20;
constexpr size_t k_last_lines = 200;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Printable, trimmed and short: for tables and JSON.
std::string quote(std::string_view line) {
  const std::string text = logs::quote_text(line.substr(0, 4096), 4096);
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  const std::string rest = text.substr(begin);
  return rest.size() > k_longest_quote ? rest.substr(0, k_longest_quote) + " ..." : rest;
}

// The last ones first.
std::vector<std::string_view> last_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty() && lines.size() < k_last_lines) {
    if (text.back() == '\n') text.remove_suffix(1);
    const size_t start = text.rfind('\n') + 1;  // 0 where there is none
    lines.push_back(text.substr(start));
    text = text.substr(0, start);
  }
  return lines;
}

// "missing module" for missing_module; empty if the sentence names it already.
std::string words_for(FailureKind kind) {
  switch (kind) {
    case FailureKind::error:
    case FailureKind::killed:
    case FailureKind::ended_by_scheduler: return "";
    case FailureKind::nan_loss: return "NaN loss";
    case FailureKind::host_out_of_memory: return "out of host memory";
    case FailureKind::collective_failed: return "collective failure";
    default: break;
  }
  std::string words(enum_name(kind));
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

void put_before(logs::EndCause& cause, const std::string& words) {
  if (!cause.bare_error.empty())
    cause.sentence = cause.bare_error;
  else if (lower(cause.sentence).starts_with(lower(words.substr(0, words.find(' ')))))
    return;  // "out of host memory", "collective timeout"
  if (!words.empty()) cause.sentence = words + ": " + cause.sentence;
}

// Words of failing trainers that the readers of logs do not know as a failure.
std::optional<logs::EndCause> find_symptom(const std::vector<std::string_view>& lines) {
  for (const std::string_view line : lines)
    if (const auto kind = logs::find_failure_kind(line)) {
      logs::EndCause cause{*kind, quote(line), {}, false};
      put_before(cause, words_for(*kind));
      return cause;
    }
  return std::nullopt;
}

// The last line that speaks of an error, else the last line with anything on it.
std::string find_last_error(const std::vector<std::string_view>& lines) {
  std::string last;
  for (const std::string_view line : lines) {
    const std::string text = quote(line);
    if (lower(text).find("error") != std::string::npos) return text;
    if (last.empty()) last = text;
  }
  return last;
}

std::optional<logs::EndCause> read_cause(const std::string& log_end) {
  try {
    logs::LogReading reading(logs::ReadOptions{});
    reading.add_lines(log_end);
    return logs::explain_end(reading.finish().log);
  } catch (const Error&) {  // unknown format
    return std::nullopt;
  }
}

logs::EndCause explain_exit(const ExitReason& exit, const std::string& log_end) {
  const std::string status = to_string(exit);
  auto cause = read_cause(log_end);
  if (cause && !cause->is_consequence) {
    put_before(*cause, cause->kind == FailureKind::error && !cause->rank ? status : words_for(cause->kind));
    return *cause;
  }
  const auto lines = last_lines(log_end);
  if (const auto symptom = find_symptom(lines))
    return {symptom->kind, symptom->sentence, cause ? cause->rank : std::nullopt, false};
  if (cause) return *cause;
  const std::string words = find_last_error(lines);
  return {FailureKind::error, words.empty() ? status + ", with no output" : status + ": " + words, {}, false};
}

logs::EndCause explain_signal(const ExitReason& exit, const std::string& log_end) {
  logs::EndCause cause{FailureKind::killed, to_string(exit), {}, false};
  auto found = find_failure_in(log_end);
  if (!found) return cause;
  put_before(*found, words_for(found->kind));
  return {found->kind == FailureKind::error ? FailureKind::killed : found->kind,
          cause.sentence + ": " + found->sentence, found->rank, false};
}

}  // namespace

std::string read_log_end(const std::string& path, std::optional<int64_t> until) {
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(path, unreadable)) return "";
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const auto size = static_cast<int64_t>(file.tellg());
  const int64_t end = std::min(size, until.value_or(size)), start = std::max<int64_t>(0, end - k_max_read);
  if (end <= start) return "";
  std::string text(static_cast<size_t>(end - start), '\0');
  file.seekg(start);
  file.read(text.data(), end - start);
  text.resize(static_cast<size_t>(file.gcount()));
  if (start > 0) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text;
}

std::optional<logs::EndCause> find_failure_in(const std::string& log_end) {
  auto cause = read_cause(log_end);
  return cause && cause->is_consequence ? std::nullopt : cause;
}

logs::EndCause explain_failure(const ExitReason& exit, const std::string& log_end) {
  switch (exit.kind) {
    case ExitReason::Kind::exited: return explain_exit(exit, log_end);
    case ExitReason::Kind::signalled: return explain_signal(exit, log_end);
    case ExitReason::Kind::timed_out: return {FailureKind::time_limit, to_string(exit), {}, false};
    case ExitReason::Kind::interrupted: break;
  }
  return {FailureKind::killed, to_string(exit), {}, false};
}

double count_memory_kills(const std::string& vmstat_path) {
  std::ifstream file(vmstat_path);
  std::string name;
  for (double value = 0.0; file >> name >> value;)
    if (name == "oom_kill") return value;
  return 0.0;
}

}  // namespace tprimat::suite
