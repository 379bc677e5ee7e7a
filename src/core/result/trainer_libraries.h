#pragma once

#include <map>
#include <string>
#include <vector>

#include "text/fields.h"

namespace tprimat {

// A vendor's library that the native trainer loads for GPUs.
struct LibraryReport {
  std::string title;          // "cuBLASLt"
  std::string serves;         // "matrix products"
  bool optional = true;       // one GPU trains without it, if slower
  std::string file, version;  // where it was loaded from; version: empty if unknown
  std::string refusal;        // why it cannot be loaded; empty where it is
  std::string remedy;

  static constexpr auto fields() {
    using L = LibraryReport;
    return field_list(
        field("title", &L::title, "name of the library"), field("serves", &L::serves, "what a training does with it"),
        field("optional", &L::optional, "one GPU trains without it, if slower"),
        field("file", &L::file, "where it was loaded from"), field("version", &L::version, "empty where it tells none"),
        field("refusal", &L::refusal, "why it cannot be loaded; empty where it is"),
        field("remedy", &L::remedy, "what brings it"));
  }
};

// The libraries of the native trainer: `tprimat-train libraries --json`.
struct TrainerLibraries {
  std::map<std::string, std::string> built_in;
  std::vector<LibraryReport> loaded;

  static constexpr auto fields() {
    using T = TrainerLibraries;
    return field_list(field("built_in", &T::built_in, "name to version: \"onednn\" -> \"2.7.2\""),
                      field("loaded", &T::loaded, "for GPUs of one platform; empty where there is no module for them"));
  }
};

}  // namespace tprimat
