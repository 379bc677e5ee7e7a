#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "text/fields.h"
#include "text/json.h"

namespace tprimat::results {

// Limits of an archive; a few kilobytes can claim to be terabytes. Sealing obeys the same limits as reading, so that
// every sealed archive can be verified.
struct ArchiveLimits {
  int64_t file_bytes = 1'000'000'000;
  int64_t all_bytes = 8'000'000'000;
  int64_t result_bytes = 2'000'000'000;  // verification holds all results in memory
  int64_t files = 200'000;               // including the manifest
  int64_t name_bytes = 4096;
};

// Why a name is not allowed in an archive, as the end of a sentence ("points outside the archive"); empty: allowed.
std::string find_fault_in_name(std::string_view name, const ArchiveLimits& limits);

// Whether a file is JSON by its name, and whether it could be a result by its text, whatever its name.
bool is_document(std::string_view name);
bool may_be_result(std::string_view name, std::string_view text);

// Whether the reader of results accepts a document. It accepts results of other tools, so a result may lack sections.
bool is_result(const Json& json);

// Whether a document holds results in a list or under keys, which no reader looks for.
bool holds_results(const Json& json);

// The name with each control character, and each byte that is no UTF-8, as %XX.
std::string escape_name(std::string_view name);

inline constexpr const char* k_manifest_name = "MANIFEST.json";
inline constexpr const char* k_signature_name = "MANIFEST.json.sig";  // in signed archives
inline constexpr int k_archive_version = 1;

struct SealedFile {
  std::string path;  // within the archive
  int64_t bytes = 0;
  std::string sha256;
  static constexpr auto fields() {
    using F = SealedFile;
    return field_list(field("path", &F::path, "name within the archive"), field("bytes", &F::bytes, "length"),
                      field("sha256", &F::sha256, "SHA-256 of the content as it stands in the archive"));
  }
};

// Stands in the archive as MANIFEST.json.
struct Manifest {
  int archive_version = k_archive_version;
  std::string program;  // "tprimat 0.1.0"
  std::string created;  // UTC
  std::vector<SealedFile> files;
  std::map<std::string, int64_t> redactions;  // number of replacements by kind
  static constexpr auto fields() {
    using M = Manifest;
    return field_list(field("archive_version", &M::archive_version, "version of this layout"),
                      field("program", &M::program, "what sealed it"), field("created", &M::created, "when, UTC"),
                      field("files", &M::files, "every other file of the archive"),
                      field("redactions", &M::redactions, "number of replacements by kind"));
  }
};

// Throws Error for an invalid manifest: not JSON, another version, a duplicate file or a negative length.
Manifest read_manifest(const std::string& text);

// SHA-256 (FIPS 180-4) as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace tprimat::results
