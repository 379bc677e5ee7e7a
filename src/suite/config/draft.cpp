#include "config/draft.h"

#include <fmt/format.h>

#include "config/values.h"

namespace tprimat::suite {
namespace {

template <class T>
void read_value(const YamlNode& node, std::optional<T>& value) {
  if constexpr (NamedEnum<T>) {
    if (node.is_scalar()) value = parse_enum<T>(node.scalar);
  } else if constexpr (std::is_same_v<T, bool>) {
    value = parse_boolean(node);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    value = parse_whole(node);
  } else if constexpr (std::is_same_v<T, double>) {
    value = parse_number(node);
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (node.is_scalar()) value = node.scalar;
  } else {
    value = parse_text_list(node);
  }
}

template <class T, NameKind kind>
void read_value(const YamlNode& node, raw::Named<T, kind>& named);

template <Described S>
void read_value(const YamlNode& node, S& section) {
  for_each_field<S>([&](const auto& each) {
    if (const YamlNode* below = node.find(each.key)) read_value(*below, section.*each.member);
  });
}

template <class T, NameKind kind>
void read_value(const YamlNode& node, raw::Named<T, kind>& named) {
  for (const YamlEntry& entry : node.entries) {
    named.entries.emplace_back(entry.key, T{});
    read_value(entry.value, named.entries.back().second);
  }
}

class TreeWriter {
 public:
  TreeWriter(const YamlNode& tree, const std::map<std::string, Origin>& derived) : tree_(tree), derived_(derived) {}

  template <Described S>
  void write(const S& section, const std::string& path, YamlNode& node) const {
    for_each_field<S>([&](const auto& each) { write_entry(std::string(each.key), section.*each.member, path, node); });
    if (!node.entries.empty()) node.kind = YamlNode::Kind::map;
  }

 private:
  template <class T>
  void write_entry(const std::string& key, const T& value, const std::string& path, YamlNode& node) const {
    YamlNode below;
    write(value, join_path(path, key), below);
    if (below.kind != YamlNode::Kind::null) node.entries.push_back({key, below.origin, std::move(below)});
  }

  template <class T, NameKind kind>
  void write(const raw::Named<T, kind>& named, const std::string& path, YamlNode& node) const {
    if (named.entries.empty()) return;
    node.kind = YamlNode::Kind::map;
    for (const auto& [name, value] : named.entries) write_entry(name, value, path, node);
  }

  template <class T>
  void write(const std::optional<T>& value, const std::string& path, YamlNode& node) const {
    if (!value) return;
    const Origin origin = origin_at(path);
    if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      node.kind = YamlNode::Kind::list;
      node.origin = origin;
      for (const std::string& text : *value) node.items.push_back(yaml_scalar(text, origin, true));
    } else if constexpr (NamedEnum<T>) {
      node = yaml_scalar(std::string(enum_name(*value)), origin, true);
    } else {
      node = yaml_scalar(print_value(*value, path), origin, std::is_same_v<T, std::string>);
    }
  }

  // A number as it is written in the configuration: 3.0e-5, not 3e-05.
  template <class T>
  std::string print_value(const T& value, const std::string& path) const {
    if constexpr (std::is_same_v<T, double>) {
      const YamlNode* node = derived_.contains(path) ? nullptr : find_path(tree_, path);
      if (node != nullptr && parse_number(*node) == value && !node->scalar.starts_with('+')) return node->scalar;
    }
    return fmt::format("{}", value);
  }

  Origin origin_at(const std::string& path) const {
    if (const auto found = derived_.find(path); found != derived_.end()) return found->second;
    const YamlNode* node = find_path(tree_, path);
    return node == nullptr ? Origin() : node->origin;
  }

  const YamlNode& tree_;
  const std::map<std::string, Origin>& derived_;
};

}  // namespace

void Draft::fail(const std::string& path, std::string what, std::string hint) {
  diagnosis.add_error({std::move(what), origin_of(tree, path), std::move(hint)}, path);
}

void Draft::warn(const std::string& path, std::string what, std::string hint) {
  diagnosis.add_warning({std::move(what), origin_of(tree, path), std::move(hint)});
}

void Draft::remark(const std::string& path, std::string what, std::string detail, std::string hint) {
  diagnosis.add_remark({std::move(what), std::move(detail), origin_of(tree, path), std::move(hint)});
}

raw::Config read_raw(const YamlNode& tree) {
  raw::Config config;
  read_value(tree, config);
  return config;
}

YamlNode write_raw(const raw::Config& config, const YamlNode& tree, const std::map<std::string, Origin>& derived) {
  YamlNode node;
  TreeWriter(tree, derived).write(config, "", node);
  return node;
}

}  // namespace tprimat::suite
