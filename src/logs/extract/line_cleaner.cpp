#include "extract/line_cleaner.h"

#include <cstring>
#include <optional>

#include "extract/scan_text.h"
#include "text/words.h"

namespace tprimat::logs {
namespace {

// Removes the digits at the start; nothing without any, or if they cannot be a rank.
std::optional<int32_t> take_rank(std::string_view& text) {
  constexpr size_t k_max_digits = 7;
  const auto rank = take_whole(text, k_max_digits);
  return rank ? std::optional(static_cast<int32_t>(*rank)) : std::nullopt;
}

void skip_spaces(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

bool is_host_char(char c) { return is_digit(c) || is_letter(c) || c == '-' || c == '_' || c == '.'; }

std::string_view take_name(std::string_view& text) {
  constexpr size_t k_longest = 100;
  size_t length = 0;
  while (length < text.size() && length < k_longest && is_host_char(text[length])) ++length;
  const std::string_view name = text.substr(0, length);
  text.remove_prefix(length);
  return name;
}

bool take_ray_worker(std::string_view& text) {
  std::string_view rest = text;
  if (!take_literal(rest, "(") || take_name(rest).empty() || !take_literal(rest, " pid=")) return false;
  const size_t close = rest.find(") ");
  if (close > 60) return false;
  text = rest.substr(close + 2);
  return true;
}

bool take_pod(std::string_view& text) {
  if (text.substr(0, 5) != "[pod/") return false;
  const size_t close = text.find("] ");
  if (close > 256) return false;
  text.remove_prefix(close + 2);
  return true;
}

bool take_compose_service(std::string_view& text) {
  std::string_view rest = text;
  const std::string_view name = take_name(rest);
  if (name.empty() || !is_digit(name.back()) || name.find_first_of("-_") == std::string_view::npos) return false;
  while (take_literal(rest, " ")) {
  }
  if (!take_literal(rest, "| ")) return false;
  text = rest;
  return true;
}

// "Nov 21 03:57:42 ", then perhaps "node01 train.sh[12]: ". Without a year it gives no time.
bool take_syslog(std::string_view& text) {
  constexpr std::string_view k_shape = "Aaa 99 99:99:99 ";
  if (text.size() < k_shape.size()) return false;
  for (size_t i = 0; i < k_shape.size(); ++i) {
    const char c = text[i], shape = k_shape[i];
    const bool fits = shape == '9'   ? is_digit(c) || (i == 4 && c == ' ')
                      : shape == 'A' ? c >= 'A' && c <= 'Z'
                      : shape == 'a' ? c >= 'a' && c <= 'z'
                                     : c == shape;
    if (!fits) return false;
  }
  if (!contains("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec", text.substr(0, 3))) return false;
  text.remove_prefix(k_shape.size());
  std::string_view rest = text;
  if (take_name(rest).empty() || !take_literal(rest, " ") || take_name(rest).empty() || !take_literal(rest, "["))
    return true;
  while (!rest.empty() && is_digit(rest.front())) rest.remove_prefix(1);
  if (take_literal(rest, "]: ")) text = rest;
  return true;
}

// A word and a colon may be anything, so a host's name must end in a digit, and the rest must begin like a log line.
bool take_host(std::string_view& text) {
  std::string_view rest = text;
  const std::string_view name = take_name(rest);
  if (name.size() < 2 || !is_digit(name.back()) || !take_literal(rest, ": ")) return false;
  const bool begins = rest.substr(0, 1) == "[" || rest.substr(0, 2) == " [" || rest.substr(0, 2) == "20";
  if (begins) text = rest;
  return begins;
}

// Cuts off what containers, schedulers and log collectors put before a line: docker compose ("trainer-1  | "), Ray
// ("(RayTrainWorker pid=123, ip=10.0.0.1) "), kubectl ("[pod/name/container] "), syslog and `ts` ("Nov 21 03:57:42 ",
// and behind it "node01 train.sh[12]: "), pdsh before a line that starts with "[" or a year ("worker-1: [2024-..").
// False, and nothing changes, when there is none of them.
bool take_container_prefix(std::string_view& text) {
  return take_ray_worker(text) || take_pod(text) || take_syslog(text) || take_compose_service(text) || take_host(text);
}

// Cuts off the stream's name that Kubernetes puts behind a time stamp: " stdout F ".
void skip_stream_name(std::string_view& text) {
  for (const std::string_view name : {" stdout F ", " stderr F ", " stdout P ", " stderr P "})
    if (take_literal(text, name)) return;
}

// Each of these removes its prefix from `line.text` and notes the rank; false, without a change, if there is none.

bool take_srun_label(LogLine& line) {  // " 12: "
  std::string_view rest = line.text;
  skip_spaces(rest);
  const auto rank = take_rank(rest);
  if (!rank || !take_literal(rest, ":") || (!rest.empty() && rest.front() != ' ')) return false;
  if (!rest.empty()) rest.remove_prefix(1);
  line.text = rest, line.rank = *rank;
  return true;
}

bool take_bracket_label(LogLine& line) {  // "[default3]:", "[rank7]:", "[0434:0]:", "[1,4]<stdout>:"
  std::string_view rest = line.text;
  if (!take_literal(rest, "[")) return false;
  size_t letters = 0;
  while (letters < rest.size() && letters < 16 && is_letter(rest[letters])) ++letters;
  rest.remove_prefix(letters);
  auto rank = take_rank(rest);
  if (!rank) return false;
  const bool pair = letters == 0 && !rest.empty() && (rest.front() == ',' || rest.front() == ':');
  if (pair) {
    rest.remove_prefix(1);
    rank = take_rank(rest);
  }
  if (!rank || !take_literal(rest, "]") || (letters == 0 && !pair)) return false;
  if (pair && (take_literal(rest, "<stdout>") || take_literal(rest, "<stderr>"))) line.rank = *rank;
  if (!take_literal(rest, ":")) return false;
  line.text = rest, line.rank = *rank;
  return true;
}

bool take_job_name(LogLine& line) {  // "my-job/0 "
  std::string_view rest = line.text;
  size_t length = 0;
  bool has_letter = false;
  while (length < rest.size() && length < 64 &&
         (is_letter(rest[length]) || is_digit(rest[length]) || std::strchr("-_.", rest[length]) != nullptr) &&
         rest[length] != '\0')
    has_letter |= is_letter(rest[length++]);
  if (!has_letter) return false;
  rest.remove_prefix(length);
  if (!take_literal(rest, "/") || !take_rank(rest) || !take_literal(rest, " ")) return false;
  line.text = rest;
  return true;
}

// "[20251030 07:25:36][rank-7/8][INFO ] [--------trainer.py:2509] : "; the time stamp is cut already.
bool take_primus_prefix(LogLine& line) {
  std::string_view rest = line.text;
  if (!take_literal(rest, "[rank-")) return false;
  const auto rank = take_rank(rest);
  if (!rank || !take_literal(rest, "/")) return false;
  const auto ranks = take_rank(rest);
  if (!ranks || !take_literal(rest, "]")) return false;
  line.rank = *rank, line.ranks = *ranks;
  line.text = rest;
  if (!take_literal(rest, "[")) {  // the level without brackets: "INFO "
    const size_t at = rest.find('[');
    if (at > 16) return true;
    rest.remove_prefix(at);
  } else {
    if (!skip_past(rest, "]")) return true;
  }
  skip_spaces(rest);
  line.text = rest;
  if (!rest.empty() && rest.front() == '[') {
    const size_t colon = rest.find("] : ");
    if (colon < 100) line.text = rest.substr(colon + 4);
  }
  return true;
}

bool take_stamp(LogLine& line) {
  std::string_view rest = line.text;
  const Figure stamp = take_timestamp(rest);
  if (!stamp) return false;
  skip_stream_name(rest);
  line.text = rest, line.unix_time = stamp;
  return true;
}

// "[titan] 2025-03-12 11:10:21,511 - root - INFO - ": a short name in brackets, then the stamp.
bool take_named_stamp(LogLine& line) {
  std::string_view rest = line.text;
  if (!take_literal(rest, "[")) return false;
  const size_t end = rest.find("] ");
  if (end > 24) return false;
  rest.remove_prefix(end + 2);
  const Figure stamp = take_timestamp(rest);
  if (!stamp) return false;
  line.text = rest, line.unix_time = stamp;
  return true;
}

// Behind blanks there may be a rank or a time stamp.
bool may_have_prefix(std::string_view text) {
  const size_t at = text.find_first_not_of(" \t");
  if (at == std::string_view::npos || text.front() == '\t') return false;
  const char first = text[at];
  return first == '[' || is_digit(first) || (at == 0 && (first == '(' || is_letter(first)));
}

bool is_between(char c, char first, char last) { return c >= first && c <= last; }

// Length of the rest of an escape sequence (ECMA-48), behind its escape byte: "[32m", "[38;2;180;60;0m", "[?25l", "[K",
// "(B", "]0;title" up to a bell or the next escape byte.
size_t escape_length(std::string_view text) {
  constexpr size_t k_longest = 64, k_longest_title = 4096;
  if (text.starts_with("(B") || text.starts_with("(0")) return 2;
  if (text.starts_with("]")) {
    const size_t end = text.substr(0, k_longest_title).find_first_of("\a\x1b\n");
    return end == std::string_view::npos || text[end] == '\n' ? 0 : text[end] == '\a' ? end + 1 : end;
  }
  if (!text.starts_with("[")) return text.starts_with("\\") ? 1 : 0;
  text = text.substr(0, k_longest);
  size_t at = 1;
  while (at < text.size() && is_between(text[at], '0', '?')) ++at;
  while (at < text.size() && is_between(text[at], ' ', '/')) ++at;
  return at < text.size() && is_between(text[at], '@', '~') ? at + 1 : 0;
}

// Without the escape byte only colour codes are recognised: "[32m".
size_t lost_escape_length(std::string_view text) {
  if (text.size() < 3 || text.front() != '[' || !is_digit(text[1])) return 0;
  size_t at = 1;
  while (at < text.size() && at < 32 && (is_digit(text[at]) || text[at] == ';')) ++at;
  return at < text.size() && text[at] == 'm' ? at + 1 : 0;
}

// Appends the line without its escape codes. A reset ("[0m") near its start shows that the escape bytes were lost.
void append_stripped(std::string_view raw, std::string& storage) {
  const bool escapes_lost = !contains(raw, "\x1b") && contains(raw.substr(0, 256), "[0m");
  const std::string_view starts = escapes_lost ? "[" : "\x1b";
  while (!raw.empty()) {
    const size_t plain = std::min(raw.find(starts), raw.size());
    storage += raw.substr(0, plain);
    raw.remove_prefix(plain);
    if (raw.empty()) return;
    const size_t length = escapes_lost ? lost_escape_length(raw) : 1 + escape_length(raw.substr(1));
    if (length == 0) storage += raw.front();
    raw.remove_prefix(std::max<size_t>(length, 1));
  }
}

// "[0m" anywhere. Brackets are rare, and memchr is several times as fast as memmem.
bool holds_lost_reset(std::string_view lines) {
  for (size_t at = lines.find('['); at != std::string_view::npos; at = lines.find('[', at + 1))
    if (lines.substr(at).starts_with("[0m")) return true;
  return false;
}

}  // namespace

std::string_view LineCleaner::strip_escapes(std::string_view lines, std::string& storage) {
  if (std::memchr(lines.data(), '\x1b', lines.size()) == nullptr && !holds_lost_reset(lines)) return lines;
  storage.clear();
  while (!lines.empty()) {
    const size_t length = std::min(lines.find('\n'), lines.size() - 1) + 1;
    append_stripped(lines.substr(0, length), storage);
    lines.remove_prefix(length);
  }
  return storage;
}

LineCleaner::RankPrefix LineCleaner::rank_prefix(std::string_view raw) {
  LogLine line{raw};
  if (raw.empty() || !(raw.front() == '[' ? take_bracket_label(line) : take_srun_label(line))) return {};
  return {line.rank, raw.size() - line.text.size()};
}

LogLine LineCleaner::clean(std::string_view raw, int64_t number) {
  LogLine line{raw, number};
  line.text = strip_escapes(raw, without_escapes_);
  for (int round = 0; round < 6 && may_have_prefix(line.text); ++round) {
    if (line.text.front() == '[') {
      if (!take_bracket_label(line) && !take_primus_prefix(line) && !take_stamp(line) && !take_named_stamp(line) &&
          !take_container_prefix(line.text))
        break;
    } else if (!take_srun_label(line) && !take_stamp(line) && !take_job_name(line) &&
               !take_container_prefix(line.text)) {
      break;
    }
  }
  return line;
}

}  // namespace tprimat::logs
