#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tprimat {

// What an archive may hold; a few kilobytes can claim to be terabytes. Sealing keeps to it as reading does, so that
// nothing is sealed that cannot be verified.
struct ArchiveLimits {
  int64_t file_bytes = 1'000'000'000;
  int64_t all_bytes = 8'000'000'000;
  int64_t files = 200'000;  // the manifest among them
  int64_t name_bytes = 4096;
};

// Why no file of an archive may be called so, as the end of a sentence ("leads out of it"); empty: it may.
std::string find_fault_in_name(std::string_view name, const ArchiveLimits& limits);

// The name with each control character, and each byte that is no UTF-8, as %XX.
std::string escape_name(std::string_view name);

}  // namespace tprimat
