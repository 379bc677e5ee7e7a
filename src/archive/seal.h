#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "archive/redactor.h"
#include "text/fields.h"

namespace tprimat {

inline constexpr const char* k_manifest_name = "MANIFEST.json";

struct SealedFile {
  std::string path;  // within the archive
  int64_t bytes = 0;
  std::string sha256;
  static constexpr auto fields() {
    using F = SealedFile;
    return std::tuple{field("path", &F::path, "name within the archive"), field("bytes", &F::bytes, "length"),
                      field("sha256", &F::sha256, "SHA-256 of the content as it stands in the archive")};
  }
};

// Stands in the archive as MANIFEST.json.
struct Manifest {
  int archive_version = 1;
  std::string program;  // "tprimat 0.1.0"
  std::string created;  // UTC
  std::vector<SealedFile> files;
  std::map<std::string, int64_t> redactions;  // how often what was replaced
  static constexpr auto fields() {
    using M = Manifest;
    return std::tuple{field("archive_version", &M::archive_version, "version of this layout"),
                      field("program", &M::program, "what sealed it"), field("created", &M::created, "when, UTC"),
                      field("files", &M::files, "every other file of the archive"),
                      field("redactions", &M::redactions, "how often what was replaced")};
  }
};

struct SealRequest {
  std::vector<std::filesystem::path> paths;  // files, and folders with all below them
  std::filesystem::path output;              // *.tar.zst, *.tar.gz or *.tgz
  RedactionOptions redaction;
  std::string program, created;
};

struct LeftOut {
  std::string path, reason;
};

struct Seal {
  Manifest manifest;
  std::string manifest_sha256;  // says which archive it is: publish it beside the figures
  std::vector<LeftOut> left_out;
};

// Writes results, logs, step records, configurations, scripts, reports and plots into one archive, whole or not at all;
// texts are redacted first. Weights, token files and whatever else lies there are left out, and named. Throws Error
// when nothing is left to seal, a path does not exist, or the archive cannot be written.
Seal seal_files(const SealRequest& request);

}  // namespace tprimat
