#include "config/check_tree.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/values.h"
#include "text/choice.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

constexpr size_t k_longest_name = 64;
constexpr size_t k_longest_quote = 40;

std::string in_section(const std::string& path) { return path.empty() ? "at the top level" : "in " + path; }

std::string quote_value(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null: return "nothing";
    case YamlNode::Kind::list: return "a list";
    case YamlNode::Kind::map: return "a section";
    case YamlNode::Kind::scalar: break;
  }
  const bool is_long = node.scalar.size() > k_longest_quote;
  const std::string text = is_long ? node.scalar.substr(0, k_longest_quote) + "..." : node.scalar;
  return node.quoted ? fmt::format("the string '{}'", text) : fmt::format("'{}'", text);
}

bool same_value(const YamlNode& a, const YamlNode& b) {
  if (!a.is_scalar() || !b.is_scalar()) return false;
  const auto x = parse_number(a), y = parse_number(b);
  return x && y ? *x == *y : a.scalar == b.scalar;
}

void merge_spellings(const YamlEntry& first, const YamlEntry& second, const std::string& path, Diagnosis& diagnosis) {
  if (same_value(first.value, second.value)) return;
  const std::string key = join_path(path, first.key);
  const std::string values = first.value.is_scalar() && second.value.is_scalar()
                                 ? fmt::format(": {} and {}", first.value.scalar, second.value.scalar)
                                 : "";
  diagnosis.add_error(
      {fmt::format("'{}' is an alias of {}, which is already set{}", second.key, key, values), second.origin.text(),
       fmt::format("the first one is at {}; keep one of them", first.origin.text())},
      key);
}

// A text in the place of a section that may be one: "a: /opt/x" becomes "a: {folder: /opt/x}".
void expand_scalar(const std::string& key, YamlNode& node) {
  YamlNode section;
  section.kind = YamlNode::Kind::map;
  section.origin = node.origin;
  const Origin origin = node.origin;
  section.entries.push_back({key, origin, std::move(node)});
  node = std::move(section);
}

void canonicalize_at(const KeySchema& schema, YamlNode& node, const std::string& path, Diagnosis& diagnosis) {
  if (node.is_scalar() && !schema.scalar_key.empty()) expand_scalar(schema.scalar_key, node);
  if (!node.is_map() || schema.kind == KeySchema::Kind::value) return;
  std::vector<YamlEntry> entries;
  for (YamlEntry& entry : node.entries) {
    const std::string key = canonical_key(schema, entry.key);
    const auto first =
        std::find_if(entries.begin(), entries.end(), [&](const YamlEntry& other) { return other.key == key; });
    if (first != entries.end()) {
      merge_spellings(*first, entry, path, diagnosis);
      continue;
    }
    entry.key = key;
    entries.push_back(std::move(entry));
  }
  node.entries = std::move(entries);
  for (YamlEntry& entry : node.entries) {
    const KeySchema* below = schema.kind == KeySchema::Kind::named ? &schema.each[0] : schema.find(entry.key);
    if (below != nullptr) canonicalize_at(*below, entry.value, join_path(path, entry.key), diagnosis);
  }
}

// The last words of a range error: "above 0 and at most 100", "between 1 and 1e+06".
std::string describe_range(const KeyRange& range) {
  const auto number = [](double value) { return fmt::format("{:.10g}", value); };
  if (range.above) return fmt::format("above {} and at most {}", number(range.least), number(range.most));
  return fmt::format("between {} and {}", number(range.least), number(range.most));
}

class ValueCheck {
 public:
  explicit ValueCheck(Diagnosis& diagnosis) : diagnosis_(diagnosis) {}

  void check(const KeySchema& schema, const YamlNode& node, const std::string& path) {
    if (schema.kind == KeySchema::Kind::value) return check_value(schema, node, path);
    if (!node.is_map()) return report_type(schema, node, path);
    for (const YamlEntry& entry : node.entries) check_entry(schema, entry, path);
  }

 private:
  void check_entry(const KeySchema& schema, const YamlEntry& entry, const std::string& path) {
    const bool named = schema.kind == KeySchema::Kind::named;
    const KeySchema* below = named ? &schema.each[0] : schema.find(entry.key);
    if (below == nullptr || (named && !is_accepted_name(schema, entry.key))) return report_key(schema, entry, path);
    check(*below, entry.value, join_path(path, entry.key));
  }

  static bool is_accepted_name(const KeySchema& schema, const std::string& name) {
    std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    if (schema.names == NameKind::label) letters += '.';
    const std::vector<std::string> accepted = accepted_keys(schema);
    if (!accepted.empty()) return std::find(accepted.begin(), accepted.end(), name) != accepted.end();
    return name.size() <= k_longest_name && name.find_first_not_of(letters) == std::string::npos && name[0] != '-';
  }

  void report_key(const KeySchema& schema, const YamlEntry& entry, const std::string& path) {
    const std::vector<std::string> accepted = accepted_keys(schema);
    if (accepted.empty()) {
      diagnosis_.add_error({fmt::format("the name '{}' {} may contain only letters, digits, {}, at most {} characters",
                                        entry.key.substr(0, k_longest_quote), in_section(path),
                                        schema.names == NameKind::label ? "_, - and ." : "_ and -", k_longest_name),
                            entry.origin.text(), "it becomes part of file names and of CONFIG_ variables"},
                           join_path(path, entry.key));
      return;
    }
    const std::string meant = nearest_word(entry.key.substr(0, k_longest_name), known_spellings(schema));
    const std::string what = fmt::format("unknown key '{}' {}", entry.key.substr(0, k_longest_quote), in_section(path));
    const std::string wrong = meant.empty() ? path : join_path(path, canonical_key(schema, meant));
    if (wrong.empty()) return diagnosis_.add_error({what, entry.origin.text(), suggest_key(entry.key, schema)});
    diagnosis_.add_error({what, entry.origin.text(), suggest_key(entry.key, schema)}, wrong);
  }

  void report_type(const KeySchema& schema, const YamlNode& node, const std::string& path) {
    const std::string what = path.empty() ? "the configuration" : path;
    std::string hint = schema.kind == KeySchema::Kind::value ? schema.doc : "";
    if (node.kind == YamlNode::Kind::null) hint = "write a value, or delete the line";
    if (node.quoted && schema.type != ValueType::choice) hint = "write it without quotes";
    diagnosis_.add_error({fmt::format("{} must be {}, got {}", what, describe_type(schema), quote_value(node)),
                          node.origin.text(), hint},
                         path);
  }

  void check_value(const KeySchema& schema, const YamlNode& node, const std::string& path) {
    if (!diagnosis_.is_sound(path)) return;
    switch (schema.type) {
      case ValueType::text:
        if (!node.is_scalar()) report_type(schema, node, path);
        return;
      case ValueType::boolean:
        if (!parse_boolean(node)) report_type(schema, node, path);
        return;
      case ValueType::text_list:
        if (!parse_text_list(node)) report_type(schema, node, path);
        return;
      case ValueType::choice: return check_choice(schema, node, path);
      case ValueType::whole:
      case ValueType::number: return check_number(schema, node, path);
    }
  }

  void check_choice(const KeySchema& schema, const YamlNode& node, const std::string& path) {
    if (!node.is_scalar()) return report_type(schema, node, path);
    std::vector<std::string> accepted = schema.choices;
    accepted.insert(accepted.end(), schema.further_spellings.begin(), schema.further_spellings.end());
    if (std::find(accepted.begin(), accepted.end(), node.scalar) != accepted.end()) return;
    diagnosis_.add_error({fmt::format("{} must be {}, got {}", path, describe_type(schema), quote_value(node)),
                          node.origin.text(), suggest_word(node.scalar, accepted)},
                         path);
  }

  void check_number(const KeySchema& schema, const YamlNode& node, const std::string& path) {
    const auto number = parse_number(node);
    if (!number) return report_type(schema, node, path);
    if (schema.range) {
      const KeyRange& range = *schema.range;
      const bool low = range.above ? *number <= range.least : *number < range.least;
      if (low || *number > range.most) {
        diagnosis_.add_error(
            {fmt::format("{} must be {}, got {}", path, describe_range(range), node.scalar.substr(0, 40)),
             node.origin.text(), schema.doc},
            path);
        return;
      }
    }
    if (schema.type == ValueType::whole && !parse_whole(node)) report_type(schema, node, path);
  }

  Diagnosis& diagnosis_;
};

}  // namespace

void canonicalize_keys(const KeySchema& schema, YamlNode& tree, Diagnosis& diagnosis) {
  canonicalize_at(schema, tree, "", diagnosis);
}

void check_values(const KeySchema& schema, const YamlNode& tree, Diagnosis& diagnosis) {
  ValueCheck(diagnosis).check(schema, tree, "");
}

std::string suggest_key(const std::string& word, const KeySchema& schema) {
  const std::vector<std::string> accepted = accepted_keys(schema);
  if (std::string meant = suggest_word(word, known_spellings(schema)); !meant.empty()) return meant;
  return accepted.empty() ? "" : fmt::format("the valid keys are {}", join(accepted, ", "));
}

}  // namespace tprimat::suite
