#pragma once

#include <cstdint>
#include <string>

namespace tprimat {

// Who gave a value.
enum class Provenance : uint8_t {
  unknown,
  built_in,     // the configuration that the program brings
  file,         // that a person wrote
  environment,  // a variable
  option,       // of the command line
  derived,      // from other values, or a catalogue
  assumed       // nobody said anything of it
};

struct Origin {
  Provenance provenance = Provenance::unknown;
  std::string place = {};  // "config.yaml:12:5", a variable's name, "--set key"; of a derived value how it follows
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

}  // namespace tprimat
