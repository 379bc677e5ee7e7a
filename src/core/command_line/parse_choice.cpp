#include "command_line/parse_choice.h"

#include <fmt/format.h>

#include <utility>

#include "text/format.h"

namespace tprimat {

Check one_of(std::vector<std::string> words) {
  return [words = std::move(words)](std::string& text) -> std::string {
    for (const std::string& word : words)
      if (text == word) return "";
    const std::string near = suggest_word(text, words);
    return fmt::format("'{}' is not one of {}{}", printable(text), join(words, ", "),
                       near.empty() ? "" : "\n  " + near);
  };
}

}  // namespace tprimat
