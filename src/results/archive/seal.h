#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "archive/archive_format.h"
#include "archive/redactor.h"

namespace tprimat::results {

struct SealRequest {
  std::vector<std::filesystem::path> paths;  // files, and folders with all below them
  std::filesystem::path output;              // *.tar.zst, *.tar.gz or *.tgz
  RedactionOptions redaction;
  std::string program, created;
  ArchiveLimits limits = {};
  std::function<std::string(const std::string& manifest)> sign = {};  // returns its signature; empty: unsigned
};

struct LeftOut {
  std::string path, reason;
};

struct Seal {
  Manifest manifest;
  std::string manifest_sha256;  // identifies the archive: publish it beside the figures
  std::vector<LeftOut> left_out;
};

// Writes results, logs, step records, configurations, scripts, reports and plots into one archive, completely or not at
// all; texts are redacted first. Weights, token files and other files are left out and listed, as are files that exceed
// the limits. Throws Error if nothing is left to seal, the total exceeds the limits, a path does not exist, or the
// archive cannot be written.
Seal seal_files(const SealRequest& request);

}  // namespace tprimat::results
