#include "extract/common/log_words.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "extract/scan_text.h"
#include "text/words.h"

namespace tprimat::logs {
namespace {

constexpr std::string_view k_source_starts[] = {
    "raise ",  "if ",     "elif ",    "while ", "print",     "assert ", "#",   "def ", "class ",  "except ",
    "return ", "logger.", "logging.", "log.",   "warnings.", "f\"",     "f'",  "\"",   "'",       "//",
    "/*",      "--",      "help=",    "help:",  "usage:",    "echo ",   "+ ",  "++",   "fprintf", "printf",
    "import ", "from ",   "with ",    "for ",   "parser.",   "try:",    "r\"", "{\"",  "`",       "| ",
};

}  // namespace

std::string quote_text(std::string_view text, size_t longest) {
  text = trim(text);
  std::string quote;
  quote.reserve(std::min(text.size(), longest));
  for (const char c : text.substr(0, longest)) quote += c < 0x20 || c > 0x7e ? ' ' : c;
  while (!quote.empty() && quote.back() == ' ') quote.pop_back();
  return quote;
}

std::string without_numbers(std::string_view text) {
  std::string words;
  while (!text.empty()) {
    size_t length = 0;
    bool has_digit = false;
    while (length < text.size() && (is_name_char(text[length]) || text[length] == '-'))
      has_digit |= is_digit(text[length++]);
    words += has_digit ? "#" : text.substr(0, length);
    if (length < text.size()) words += text[length++];
    text.remove_prefix(length);
  }
  return words;
}

bool looks_like_source(std::string_view text) {
  text = trim(text);
  for (const std::string_view start : k_source_starts)
    if (text.starts_with(start)) return true;
  for (const std::string_view mark : {" = \"", " = '", " = f\"", " .....", "help=\"", "(\"", "(r\"", "{\"", ": \""})
    if (contains(text, mark)) return true;
  return false;
}

bool is_name_char(char c) { return is_digit(c) || c == '_' || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'); }

std::string_view signal_name(int64_t number) {
  constexpr std::pair<int64_t, std::string_view> k_names[] = {
      {1, "SIGHUP"},  {2, "SIGINT"},   {3, "SIGQUIT"},  {4, "SIGILL"},   {6, "SIGABRT"},  {7, "SIGBUS"},  {8, "SIGFPE"},
      {9, "SIGKILL"}, {10, "SIGUSR1"}, {11, "SIGSEGV"}, {12, "SIGUSR2"}, {13, "SIGPIPE"}, {15, "SIGTERM"}};
  for (const auto& [value, name] : k_names)
    if (value == number) return name;
  return "";
}

}  // namespace tprimat::logs
