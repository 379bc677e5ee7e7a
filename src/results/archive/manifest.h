#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "text/fields.h"

namespace tprimat::results {

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
  std::map<std::string, int64_t> redactions;  // how often what was replaced
  static constexpr auto fields() {
    using M = Manifest;
    return field_list(field("archive_version", &M::archive_version, "version of this layout"),
                      field("program", &M::program, "what sealed it"), field("created", &M::created, "when, UTC"),
                      field("files", &M::files, "every other file of the archive"),
                      field("redactions", &M::redactions, "how often what was replaced"));
  }
};

// Throws Error for what is no manifest: no JSON, another version, a file that it lists twice or with a length below 0.
Manifest read_manifest(const std::string& text);

}  // namespace tprimat::results
