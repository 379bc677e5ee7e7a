#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/json.h"

namespace tprimat::results {

// What an archive may hold; a few kilobytes can claim to be terabytes. Sealing keeps to it as reading does, so that
// nothing is sealed that cannot be verified.
struct ArchiveLimits {
  int64_t file_bytes = 1'000'000'000;
  int64_t all_bytes = 8'000'000'000;
  int64_t result_bytes = 2'000'000'000;  // whoever verifies holds all results at once
  int64_t files = 200'000;               // the manifest among them
  int64_t name_bytes = 4096;
};

// Why no file of an archive may be called so, as the end of a sentence ("points outside the archive"); empty: it may.
std::string find_fault_in_name(std::string_view name, const ArchiveLimits& limits);

// JSON by its name, and a file that could be a result by its text, whatever it is called.
bool is_document(std::string_view name);
bool may_be_result(std::string_view name, std::string_view text);

// Whether the reader of results takes a document for one. It accepts results of other tools, so a result that lacks a
// section is still one.
bool is_result(const Json& json);

// Whether a document holds results in a list or under keys, where no reader finds them.
bool holds_results(const Json& json);

// The name with each control character, and each byte that is no UTF-8, as %XX.
std::string escape_name(std::string_view name);

}  // namespace tprimat::results
