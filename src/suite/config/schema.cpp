#include "config/schema.h"

#include <fmt/format.h>

#include "config/raw.h"
#include "config/values.h"
#include "text/choice.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

template <class T>
struct OptionalOf {
  static constexpr bool is = false;
};
template <class T>
struct OptionalOf<std::optional<T>> {
  static constexpr bool is = true;
  using Value = T;
};

template <class T>
concept NamedThings = requires { T::name_kind; };

template <class T>
KeySchema schema_of(std::string_view doc);

template <NamedEnum E>
void list_choices(KeySchema& schema) {
  for (const auto& [value, name] : EnumNames<E>::values)
    (enum_name(value) == name ? schema.choices : schema.further_spellings).emplace_back(name);
}

template <class Value>
void describe_value(KeySchema& schema) {
  if constexpr (NamedEnum<Value>) {
    schema.type = ValueType::choice;
    list_choices<Value>(schema);
  } else if constexpr (std::is_same_v<Value, bool>) {
    schema.type = ValueType::boolean;
  } else if constexpr (std::is_same_v<Value, int64_t>) {
    schema.type = ValueType::whole;
  } else if constexpr (std::is_same_v<Value, double>) {
    schema.type = ValueType::number;
  } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
    schema.type = ValueType::text_list;
  } else {
    static_assert(std::is_same_v<Value, std::string>);
  }
}

template <Described S>
void describe_section(KeySchema& schema) {
  schema.kind = KeySchema::Kind::section;
  for_each_field<S>([&](const auto& each) {
    using Member = std::decay_t<decltype(std::declval<S>().*each.member)>;
    schema.keys.push_back({std::string(each.key), schema_of<Member>(each.doc)});
  });
  if constexpr (requires { S::aliases; }) schema.aliases.assign(std::begin(S::aliases), std::end(S::aliases));
  if constexpr (requires { S::scalar_key; }) schema.scalar_key = S::scalar_key;
  if constexpr (requires { S::ranges; })
    for (const KeyRange& range : S::ranges)
      for (auto& [key, child] : schema.keys)
        if (key == range.key) child.range = range;
}

template <class T>
KeySchema schema_of(std::string_view doc) {
  KeySchema schema;
  schema.doc = doc;
  if constexpr (NamedThings<T>) {
    schema.kind = KeySchema::Kind::named;
    schema.names = T::name_kind;
    using Thing = typename decltype(T::entries)::value_type::second_type;
    schema.each.push_back(schema_of<Thing>(doc));
  } else if constexpr (OptionalOf<T>::is) {
    describe_value<typename OptionalOf<T>::Value>(schema);
  } else {
    describe_section<T>(schema);
  }
  return schema;
}

constexpr std::pair<std::string_view, Framework> k_path_names[] = {
    {"primus", Framework::prim},    {"megatron", Framework::mega}, {"megatron_deepspeed", Framework::mgds},
    {"deepspeed", Framework::deep}, {"nemo", Framework::nemo},     {"transformers", Framework::tran},
    {"fsdp", Framework::fsdp}};

std::string canonical_framework(const std::string& key) {
  const auto framework = parse_enum<Framework>(key);
  for (const auto& [name, value] : k_path_names)
    if (framework == value) return std::string(name);
  return key;
}

}  // namespace

const KeySchema* KeySchema::find(std::string_view key) const {
  for (const auto& [name, child] : keys)
    if (name == key) return &child;
  return nullptr;
}

const KeySchema& config_schema() {
  static const KeySchema schema = schema_of<raw::Config>("");
  return schema;
}

const KeySchema* step_into(const KeySchema& schema, const std::string& key) {
  return schema.kind == KeySchema::Kind::named ? &schema.each[0] : schema.find(key);
}

std::vector<std::string> split_key_path(const std::string& path) {
  const std::vector<std::string> parts = split_path(path);
  std::vector<std::string> elements;
  const KeySchema* schema = &config_schema();
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string element = parts[i];
    if (schema != nullptr && schema->names == NameKind::label)
      while (i + 1 < parts.size() && (i + 2 < parts.size() || schema->each[0].find(parts[i + 1]) == nullptr))
        element += "." + parts[++i];
    if (schema != nullptr) schema = step_into(*schema, canonical_key(*schema, element));
    elements.push_back(std::move(element));
  }
  return elements;
}

std::string canonical_key(const KeySchema& schema, const std::string& key) {
  for (const KeyAlias& alias : schema.aliases)
    if (alias.alias == key) return std::string(alias.key);
  if (schema.kind != KeySchema::Kind::named) return key;
  if (schema.names == NameKind::framework) return canonical_framework(key);
  if (schema.names == NameKind::framework_id) {
    const auto framework = parse_enum<Framework>(key);
    return framework ? std::string(enum_name(*framework)) : key;
  }
  const auto platform = schema.names == NameKind::platform ? parse_word<Platform>(key) : std::nullopt;
  return platform ? std::string(enum_name(*platform)) : key;
}

std::vector<std::string> accepted_keys(const KeySchema& schema) {
  std::vector<std::string> keys;
  for (const auto& [key, child] : schema.keys) keys.push_back(key);
  if (schema.kind == KeySchema::Kind::named && schema.names == NameKind::platform) keys = {"nvd", "amd", "cpu"};
  if (schema.kind == KeySchema::Kind::named && schema.names == NameKind::framework)
    for (const auto& [name, framework] : k_path_names) keys.emplace_back(name);
  if (schema.kind == KeySchema::Kind::named && schema.names == NameKind::framework_id)
    for (const auto& [framework, name] : EnumNames<Framework>::values)
      if (enum_name(framework) == name) keys.emplace_back(name);
  return keys;
}

std::vector<std::string> known_spellings(const KeySchema& schema) {
  std::vector<std::string> spellings = accepted_keys(schema);
  for (const KeyAlias& alias : schema.aliases)
    if (alias.alias.size() > 2) spellings.emplace_back(alias.alias);  // TP resembles every short word
  if (schema.kind == KeySchema::Kind::named && schema.names == NameKind::platform)
    for (const auto& [platform, name] : EnumNames<Platform>::values) spellings.emplace_back(name);
  return spellings;
}

std::string describe_type(const KeySchema& schema) {
  if (schema.kind == KeySchema::Kind::named) return "a section with one entry per name";
  if (schema.kind == KeySchema::Kind::section) {
    const std::string keys = fmt::format("a section with the keys {}", join(accepted_keys(schema), ", "));
    return schema.scalar_key.empty() ? keys : fmt::format("a {}, or {}", schema.scalar_key, keys);
  }
  switch (schema.type) {
    case ValueType::text: return "a string";
    case ValueType::whole: return "a whole number";
    case ValueType::number: return "a number";
    case ValueType::boolean: return "true or false";
    case ValueType::choice: return fmt::format("one of {}", join(schema.choices, ", "));
    case ValueType::text_list: return "a list of strings";
  }
  return "";
}

}  // namespace tprimat::suite
