#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat::suite {

// A second spelling of a key: TP for tensor_model_parallel_size. It does not survive the merge of the layers.
struct KeyAlias {
  std::string_view alias, key;
};

// The values a number may have, both ends included unless `above` says that the lower end is not.
struct KeyRange {
  std::string_view key;
  double least = 0, most = 0;
  bool above = false;  // greater than `least`, not equal to it
};

enum class ValueType { text, whole, number, boolean, choice, text_list };

// The kind of names in a map of named entries: any (models, strategies), platforms, the frameworks' long names (paths)
// or their short ones, labels of installations, which may hold dots.
enum class NameKind { any, platform, framework, framework_id, label };

struct NamedSchema;

// The shape of the configuration as data, made once from the raw structs' field lists. Everything that does not depend
// on the meaning of a key uses it: unknown keys, "did you mean", types, ranges, --set and CONFIG_ paths, docs.
struct KeySchema {
  enum class Kind { value, section, named };
  Kind kind = Kind::value;
  std::string doc;

  ValueType type = ValueType::text;  // of a value
  std::vector<std::string> choices,
      further_spellings;          // of a choice: the printed ones; other accepted ones
  std::optional<KeyRange> range;  // of a number

  std::vector<NamedSchema> keys;  // of a section, in the order of the docs
  std::vector<KeyAlias> aliases;  // of a section
  std::string scalar_key;         // of a section: a text in its place is the value of this key; empty: none may be

  NameKind names = NameKind::any;  // of a map of named things
  std::vector<KeySchema> each;     // one element: the shape of every named thing

  const KeySchema* find(std::string_view key) const;  // a section's key; nullptr when unknown
};

struct NamedSchema {
  std::string key;
  KeySchema schema;
};

// The whole configuration.
const KeySchema& config_schema();

// "a.b.c" as its elements. A label that holds dots is one of them: it ends with the path, or before a key of its
// section that ends the path.
std::vector<std::string> split_key_path(const std::string& path);

// The shape below `key`, which is in its canonical spelling; nullptr when there is none.
const KeySchema* step_into(const KeySchema& schema, const std::string& key);

// The canonical spelling of one path element inside `schema`: an alias becomes its key, "nvidia" becomes "nvd", "prim"
// "primus". Other words come back as they are.
std::string canonical_key(const KeySchema& schema, const std::string& key);

// The keys that `schema` accepts here, canonical; for "did you mean" and for lists of choices.
std::vector<std::string> accepted_keys(const KeySchema& schema);

// All their spellings, for "did you mean".
std::vector<std::string> known_spellings(const KeySchema& schema);

// "a whole number", "one of fp32, tf32, ...": the phrase after "must be".
std::string describe_type(const KeySchema& schema);

}  // namespace tprimat::suite
