#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tprimat {

// Where a value comes from.
enum class Provenance : uint8_t {
  unknown,
  built_in,     // the program's default configuration
  file,         // that a person wrote
  environment,  // a variable
  option,       // of the command line
  derived,      // from other values, or a catalogue
  assumed       // stated nowhere
};

struct Origin {
  Provenance provenance = Provenance::unknown;
  std::string place = {};  // "config.yaml:12:5", a variable's name, "--set key"; of a derived value, how it is derived
  bool known() const { return provenance != Provenance::unknown; }
  std::string text() const;  // for people
};

inline std::string Origin::text() const {
  switch (provenance) {
    case Provenance::built_in: return "built-in default";
    case Provenance::environment: return "environment " + place;
    case Provenance::assumed: return "default";
    default: return place;
  }
}

struct YamlEntry;

// A YAML value as it was written: scalars stay text, so that the reader of a key decides its type. Aliases and merge
// keys (<<) are already expanded.
struct YamlNode {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  bool quoted = false;  // '8' and "8" are text, 8 may be a number
  std::string scalar;
  Origin origin;                   // where the value was written: "config.yaml:12:5"
  std::vector<YamlEntry> entries;  // of a map, in the order of the file
  std::vector<YamlNode> items;     // of a list

  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_map() const { return kind == Kind::map; }
  const YamlNode* find(std::string_view key) const;  // nullptr if this is not a map or has no such key
  YamlNode* find(std::string_view key);
  YamlNode& operator[](std::string_view key);  // adds the key when it is missing; turns any other kind into a map
};

struct YamlEntry {
  std::string key;
  Origin origin;  // of the key
  YamlNode value;
};

YamlNode yaml_scalar(std::string text, Origin origin, bool quoted = false);

struct YamlDocument {
  YamlNode root;
  std::vector<Problem> duplicates;  // keys given twice; `root` has the first
};

// Limits far beyond any real file, so that a hostile one cannot exhaust memory or the stack.
inline constexpr size_t k_max_yaml_bytes = size_t{1} << 20;
inline constexpr size_t k_max_yaml_nodes = 20000;  // after aliases are expanded
inline constexpr size_t k_max_yaml_depth = 32;

// Reads one YAML document. Throws Error at "name:line:column" for what cannot be read: bad syntax, bytes that are not
// UTF-8 text, several documents, tags, keys that are not plain text, nesting or alias expansion beyond the bounds.
YamlDocument parse_yaml(std::string_view text, const std::string& name);

// The same for a text that is not a file: its values have the provenance of `document`, and places within it.
YamlDocument parse_yaml(std::string_view text, const Origin& document);

// Block style, two-space indent; quoted scalars in double quotes. With `origins`, each value has its origin as a
// comment behind it.
std::string print_yaml(const YamlNode& node, bool origins);

}  // namespace tprimat
