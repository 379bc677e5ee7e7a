#include "extract/container_prefix.h"

#include "extract/scan_text.h"
#include "text/words.h"

namespace tprimat::logs {
namespace {

bool is_name(char c) {
  return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-' || c == '_' || c == '.';
}

std::string_view take_name(std::string_view& text) {
  constexpr size_t k_longest = 100;
  size_t length = 0;
  while (length < text.size() && length < k_longest && is_name(text[length])) ++length;
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

// "Nov 21 03:57:42 ", then perhaps "node01 train.sh[12]: ". There is no year, so it tells no time.
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

// A word and a colon may be anything, so a host's name ends in a digit, and what follows begins like a log's line.
bool take_host(std::string_view& text) {
  std::string_view rest = text;
  const std::string_view name = take_name(rest);
  if (name.size() < 2 || !is_digit(name.back()) || !take_literal(rest, ": ")) return false;
  const bool begins = rest.substr(0, 1) == "[" || rest.substr(0, 2) == " [" || rest.substr(0, 2) == "20";
  if (begins) text = rest;
  return begins;
}

}  // namespace

bool take_container_prefix(std::string_view& text) {
  return take_ray_worker(text) || take_pod(text) || take_syslog(text) || take_compose_service(text) || take_host(text);
}

void skip_stream_name(std::string_view& text) {
  for (const std::string_view name : {" stdout F ", " stderr F ", " stdout P ", " stderr P "})
    if (take_literal(text, name)) return;
}

}  // namespace tprimat::logs
