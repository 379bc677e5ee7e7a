#include "command_line/value_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "text/format.h"

namespace tprimat {

Check time_in_seconds() {
  return [](std::string& text) -> std::string {
    constexpr double k_max_seconds = 1e9;
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    std::string_view unit(stop, static_cast<size_t>(end - stop));
    unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
    const double seconds = unit.empty() || unit == "s"    ? value
                           : unit == "m" || unit == "min" ? 60.0 * value
                           : unit == "h"                  ? 3600.0 * value
                                                          : -1.0;
    if (error != std::errc() || !(seconds >= 0.0 && seconds <= k_max_seconds))
      return fmt::format("'{}' is not a time: give a number from 0 to {:.0f} s, such as 90, 90s, 30m or 2h",
                         printable(text.substr(0, 64)), k_max_seconds);
    text = fmt::format("{}", seconds);
    return "";
  };
}

Check one_of(std::vector<std::string> words) {
  return [words = std::move(words)](std::string& text) -> std::string {
    for (const std::string& word : words)
      if (text == word) return "";
    const std::string near = suggest_word(text, words);
    return fmt::format("'{}' is not one of {}{}", printable(text), join(words, ", "),
                       near.empty() ? "" : "\n  " + near);
  };
}

void require_no_input(const std::string& output, const std::vector<std::string>& inputs, const char* option) {
  std::error_code missing;
  for (const std::string& input : inputs)
    if (!output.empty() && std::filesystem::equivalent(output, input, missing))
      throw Error(
          Problem{fmt::format("{} is read, so it cannot be written", printable(output)), option, "name another file"});
}

}  // namespace tprimat
