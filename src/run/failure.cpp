#include "run/failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <optional>

namespace tprimat {
namespace {

constexpr size_t k_longest_quote = 200;

// What trainers print when they end badly, and what it means. The first that any of the last lines contains wins.
struct Symptom {
  const char* text;
  const char* meaning;
};
constexpr Symptom k_symptoms[] = {
    {"out of memory", "out of memory"},
    {"outofmemoryerror", "out of memory"},
    {"std::bad_alloc", "out of memory"},
    {"cannot allocate memory", "out of memory"},
    {"no module named", "missing module"},
    {"no space left on device", "disk full"},
    {"loss is nan", "NaN loss"},
    {"nan loss", "NaN loss"},
    {"nan in loss", "NaN loss"},
    {"is not finite", "NaN loss"},
    {"rank : ", "a rank died"},
    {"watchdog caught collective operation timeout", "a collective timed out"},
};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Printable, without margins, not too long: it will stand in a table and in JSON.
std::string quote(const std::string& line) {
  std::string text;
  for (const char c : line)
    text += static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e ? ' ' : c;
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  text = text.substr(begin, text.find_last_not_of(' ') - begin + 1);
  return text.size() > k_longest_quote ? text.substr(0, k_longest_quote) + " ..." : text;
}

std::optional<std::string> find_symptom(const std::deque<std::string>& lines) {
  for (const Symptom& symptom : k_symptoms)
    for (auto line = lines.rbegin(); line != lines.rend(); ++line)
      if (lower(*line).find(symptom.text) != std::string::npos)
        return fmt::format("{}: {}", symptom.meaning, quote(*line));
  return std::nullopt;
}

// The last line that speaks of an error, else the last line with anything on it.
std::string find_last_words(const std::deque<std::string>& lines) {
  std::string last;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const std::string text = quote(*line);
    if (lower(text).find("error") != std::string::npos) return text;
    if (last.empty()) last = text;
  }
  return last;
}

}  // namespace

std::string explain_failure(const ExitReason& exit, const std::deque<std::string>& last_lines) {
  if (exit.kind != ExitReason::Kind::exited) return to_string(exit);
  if (const auto symptom = find_symptom(last_lines)) return *symptom;
  const std::string words = find_last_words(last_lines);
  return words.empty() ? to_string(exit) + ", without a word" : to_string(exit) + ": " + words;
}

double count_memory_kills(const std::string& vmstat_path) {
  std::ifstream file(vmstat_path);
  std::string name;
  for (double value = 0.0; file >> name >> value;)
    if (name == "oom_kill") return value;
  return 0.0;
}

}  // namespace tprimat
