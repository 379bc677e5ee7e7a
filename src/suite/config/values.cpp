#include "config/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tprimat::suite {
namespace {

constexpr double k_largest_whole = 9e15;  // every whole number below it is exact in a double

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  size_t at = 0;
  while ((at = text.find_first_not_of(", \t", at)) != std::string::npos) {
    const size_t end = std::min(text.find_first_of(", \t", at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

}  // namespace

std::optional<double> parse_number(const YamlNode& node) {
  if (!node.is_scalar() || node.quoted) return std::nullopt;
  const char* begin = node.scalar.data();
  const char* end = begin + node.scalar.size();
  if (begin != end && *begin == '+') ++begin;
  double value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<int64_t> parse_whole(const YamlNode& node) {
  const auto number = parse_number(node);
  if (!number || *number != std::floor(*number) || std::fabs(*number) > k_largest_whole) return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::optional<bool> parse_boolean(const YamlNode& node) {
  if (!node.is_scalar() || node.quoted) return std::nullopt;
  for (const std::string_view word : {"true", "True", "TRUE"})
    if (node.scalar == word) return true;
  for (const std::string_view word : {"false", "False", "FALSE"})
    if (node.scalar == word) return false;
  return std::nullopt;
}

std::optional<std::vector<std::string>> parse_text_list(const YamlNode& node) {
  if (node.is_scalar()) return split_words(node.scalar);
  if (node.kind != YamlNode::Kind::list) return std::nullopt;
  std::vector<std::string> texts;
  for (const YamlNode& item : node.items) {
    if (!item.is_scalar()) return std::nullopt;
    texts.push_back(item.scalar);
  }
  return texts;
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    parts.emplace_back(path.substr(0, dot));
    path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
  }
  return parts;
}

std::string join_path(const std::string& above, const std::string& key) {
  return above.empty() ? key : above + "." + key;
}

// The value of the longest key with which `path` begins, since a key may hold dots; takes that key off the path.
static const YamlNode* step_down(const YamlNode& node, std::string_view& path) {
  const YamlEntry* found = nullptr;
  for (const YamlEntry& entry : node.entries) {
    const std::string& key = entry.key;
    const bool begins = path.starts_with(key) && (path.size() == key.size() || path[key.size()] == '.');
    if (begins && (found == nullptr || key.size() > found->key.size())) found = &entry;
  }
  if (found == nullptr) return nullptr;
  path.remove_prefix(std::min(path.size(), found->key.size() + 1));
  return &found->value;
}

const YamlNode* find_path(const YamlNode& root, std::string_view path) {
  const YamlNode* node = &root;
  while (node != nullptr && !path.empty()) node = step_down(*node, path);
  return node;
}

Origin find_origin(const YamlNode& root, std::string_view path) {
  const YamlNode* node = &root;
  while (!path.empty()) {
    const YamlNode* below = step_down(*node, path);
    if (below == nullptr) break;
    node = below;
  }
  return node->origin;
}

std::string origin_of(const YamlNode& root, std::string_view path) { return find_origin(root, path).text(); }

bool is_overridden(const YamlNode& root, std::string_view path) {
  const Provenance provenance = find_origin(root, path).provenance;
  return provenance == Provenance::environment || provenance == Provenance::option;
}

bool is_stated(const YamlNode& root, std::string_view path) {
  const YamlNode* node = find_path(root, path);
  return node != nullptr && node->origin.provenance != Provenance::built_in;
}

}  // namespace tprimat::suite
