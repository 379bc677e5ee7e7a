#include "command_line/suggest_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/choice.h"
#include "text/format.h"
#include "text/words.h"

namespace tprimat {
namespace {

constexpr size_t k_min_letters = 2;  // of an abbreviation
constexpr size_t k_max_named = 4;

std::string bare(const std::string& name) { return name.substr(std::min(name.size(), name.find_first_not_of('-'))); }

// "did you mean 'a', 'b' or 'c'?"
std::string ask(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}'{}'", i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
  return fmt::format("did you mean {}?", text);
}

std::vector<std::string> completions_of(const std::string& word, const std::vector<std::string>& names) {
  std::vector<std::string> found;
  if (bare(word).size() < k_min_letters) return found;
  for (const std::string& name : names)
    if (name.starts_with(word)) found.push_back(name);
  return found.size() <= k_max_named ? found : std::vector<std::string>();
}

// The longest name of which the word has one part more: --output-dir has --output, --batch-size ends
// --global-batch-size.
std::string relative_of(const std::string& word, const std::vector<std::string>& names) {
  std::string best;
  for (const std::string& name : names) {
    const bool longer = word.starts_with(name + "-"), shorter = name.ends_with("-" + bare(word));
    if ((longer || (shorter && bare(word).size() > k_min_letters)) && name.size() > best.size()) best = name;
  }
  return best;
}

}  // namespace

std::string suggest_name(const std::string& text, const std::vector<std::string>& names) {
  const std::string word = lower_case(text.substr(0, 64));
  if (const auto found = completions_of(word, names); !found.empty()) return ask(found);
  if (const std::string near = suggest_word(word, names); !near.empty()) return near;
  const std::string relative = relative_of(word, names);
  return relative.empty() ? "" : ask({relative});
}

}  // namespace tprimat
