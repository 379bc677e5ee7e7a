#include "extract/common/yaml_block.h"

#include <algorithm>

#include "extract/common/log_words.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

constexpr int k_longest_block = 5000;  // lines
constexpr int k_max_before = 8;        // lines between its title and its first line
constexpr size_t k_max_yaml_levels = 16, k_longest_yaml_key = 100;

}  // namespace

void YamlBlock::open() {
  *this = {};
  open_ = true;
}

std::optional<Setting> YamlBlock::read(std::string_view text) {
  open_ &= ++lines_ <= k_longest_block && (began_ || lines_ <= k_max_before);
  const std::string_view words = trim(text);
  if (words.empty() || words.starts_with("- ") || words.front() == '#') return std::nullopt;
  const size_t colon = words.find(':');
  const std::string_view key = words.substr(0, colon);
  const bool is_entry = colon != std::string_view::npos && colon > 0 && colon <= k_longest_yaml_key &&
                        std::all_of(key.begin(), key.end(), is_name_char) &&
                        (colon + 1 == words.size() || words[colon + 1] == ' ');
  if (!is_entry) {
    open_ &= !began_;
    return std::nullopt;
  }
  began_ = true;
  const size_t indent = std::min(text.find_first_not_of(' '), text.size());
  while (!levels_.empty() && levels_.back().indent >= indent) levels_.pop_back();
  const std::string_view value = trim(words.substr(colon + 1));
  std::string path = levels_.empty() ? "" : levels_.back().key + ".";
  path += key;
  if (!value.empty()) return Setting{path, quote_text(value, 400)};
  if (levels_.size() < k_max_yaml_levels) levels_.push_back({indent, path});
  return std::nullopt;
}

}  // namespace tprimat::logs
