#include "extract/common/nested_settings.h"

#include <algorithm>

#include "extract/common/log_words.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

constexpr size_t k_max_levels = 16;
constexpr size_t k_max_characters = 1 << 20;  // of one dump
constexpr size_t k_max_settings = 5000;

bool is_open_bracket(char c) { return c == '(' || c == '[' || c == '{'; }
bool is_close_bracket(char c) { return c == ')' || c == ']' || c == '}'; }

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= k_longest_key && std::all_of(text.begin(), text.end(), is_name_char);
}

}  // namespace

std::string_view without_quotes(std::string_view text) {
  text = trim(text);
  const bool quoted = text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

void NestedSettings::open() {
  *this = {};
  open_ = true;
}

void NestedSettings::append(char c) {
  std::string& word = after_key_ ? value_ : key_;
  const size_t longest = !after_key_ ? k_longest_key : list_depth_ > 0 ? k_longest_list : k_longest_value;
  if (word.size() < longest) word += c;
}

void NestedSettings::begin_level() {
  const std::string outer = levels_.empty() ? "" : levels_.back().key;
  levels_.push_back({levels_.empty() || key_.empty() ? outer : outer + quote_text(key_, k_longest_key) + "."});
  key_.clear(), value_.clear();
  after_key_ = false;
  open_ &= levels_.size() <= k_max_levels;
}

void NestedSettings::end_value() {
  const bool is_list = !value_.empty() && trim(value_).starts_with('[');
  const std::string value = quote_text(value_, is_list ? k_longest_list : k_longest_value);
  if (after_key_ && !key_.empty() && found_.size() < k_max_settings)
    found_.push_back({levels_.back().key + quote_text(key_, k_longest_key), value});
  key_.clear(), value_.clear();
  after_key_ = false;
}

void NestedSettings::end_level() {
  if (after_key_ && !trim(value_).empty()) end_value();
  key_.clear(), value_.clear();
  after_key_ = false;
  levels_.pop_back();
  open_ = !levels_.empty();
}

void NestedSettings::read_in_string(char c) {
  if (escaped_ || c == '\\') {
    escaped_ = !escaped_;
    append(c);
  } else if (c == quote_) {
    quote_ = 0;
    if (list_depth_ > 0) append(c);
  } else {
    append(c);
  }
}

void NestedSettings::read_char(char c) {
  if (quote_ != 0) return read_in_string(c);
  if (c == '"' || c == '\'') {
    quote_ = c;
    if (list_depth_ > 0) append(c);
  } else if (list_depth_ > 0 || (after_key_ && (c == '[' || c == '('))) {
    list_depth_ += is_open_bracket(c) ? 1 : is_close_bracket(c) ? -1 : 0;
    append(c);
  } else if (c == '{') {
    begin_level();
  } else if (levels_.empty()) {
    open_ = c == ' ' || c == '\t';  // nothing but blanks before the first bracket
  } else if (c == '}') {
    end_level();
  } else if (c == ',') {
    end_value();
  } else if (c == ':' && !after_key_) {
    after_key_ = true;
  } else if (after_key_ || !(c == ' ' || c == '\t')) {
    append(c);
  }
}

void NestedSettings::read(std::string_view text) {
  characters_ += text.size() + 1;
  if (characters_ > k_max_characters) open_ = false;
  for (const char c : text) {
    if (!open_) return;
    read_char(c);
  }
  if (list_depth_ > 0) append(' ');
  if (quote_ != 0) open_ = false;  // a string does not span lines
}

std::vector<Setting> read_call_arguments(std::string_view text) {
  std::vector<Setting> found;
  int depth = 0;
  char quote = 0;
  size_t start = 0;
  const auto take = [&](size_t end) {
    const std::string_view part = text.substr(start, end - start);
    const size_t equals = part.find('=');
    start = end + 1;
    if (equals == std::string_view::npos || !is_name(trim(part.substr(0, equals)))) return;
    found.push_back({std::string(trim(part.substr(0, equals))),
                     quote_text(without_quotes(part.substr(equals + 1)), k_longest_value)});
  };
  for (size_t at = 0; at < text.size() && found.size() < k_max_settings; ++at) {
    const char c = text[at];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if ((c == '\'' || c == '"') && at > 0 && contains("=[({, ", text.substr(at - 1, 1))) {
      quote = c;
    } else if (is_open_bracket(c)) {
      ++depth;
    } else if (is_close_bracket(c) && --depth < 0) {
      take(at);
      return found;
    } else if (c == ',' && depth == 0) {
      take(at);
    }
  }
  take(text.size());
  return found;
}

void YamlBlock::open() {
  *this = {};
  open_ = true;
}

void YamlBlock::read_item(std::string_view item) {
  if (levels_.empty()) return;
  const std::string_view value = without_quotes(item);
  has_plain_items_ &= !value.empty() && value.find_first_of(":[{") == std::string_view::npos;
  if (list_.size() < k_longest_list) list_ += (list_.empty() ? "[" : ", ") + quote_text(value, k_longest_value);
}

void YamlBlock::end_list(std::vector<Setting>& found) {
  if (!list_.empty() && !levels_.empty() && has_plain_items_ && list_.size() < k_longest_list)
    found.push_back({levels_.back().key, list_ + "]"});
  list_.clear();
  has_plain_items_ = true;
}

std::vector<Setting> YamlBlock::read(std::string_view text) {
  constexpr int k_longest_block = 5000;  // lines
  constexpr int k_max_before = 8;        // lines between its title and its first line
  open_ &= ++lines_ <= k_longest_block && (began_ || lines_ <= k_max_before);
  const std::string_view words = trim(text);
  std::vector<Setting> found;
  if (words.starts_with("- ")) {
    read_item(words.substr(2));
  } else if (!words.empty() && words.front() != '#') {
    end_list(found);
    if (auto entry = read_entry(text)) found.push_back(std::move(*entry));
  }
  return found;
}

std::optional<Setting> YamlBlock::read_entry(std::string_view text) {
  constexpr size_t k_longest_yaml_key = 100;
  const std::string_view words = trim(text);
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
  if (!value.empty()) return Setting{path, quote_text(value, k_longest_value)};
  if (levels_.size() < k_max_levels) levels_.push_back({indent, path});
  return std::nullopt;
}

}  // namespace tprimat::logs
