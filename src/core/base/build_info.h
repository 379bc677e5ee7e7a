#pragma once

#include <string_view>

namespace tprimat {

// The identity of this binary; stored with every result.
struct BuildInfo {
  std::string_view version;   // "0.1.0"
  std::string_view revision;  // of the sources, "-dirty" when they differ from it; empty outside a git checkout
  std::string_view type;      // "Release"
  std::string_view compiler;  // "gcc 12.2.0"
};
BuildInfo build_info();

}  // namespace tprimat
