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
  std::string manifest_sha256;  // says which archive it is: publish it beside the figures
  std::vector<LeftOut> left_out;
};

// Writes results, logs, step records, configurations, scripts, reports and plots into one archive, whole or not at all;
// texts are redacted first. Weights, token files and whatever else lies there are left out, and named; so is what no
// archive may hold. Throws Error when nothing is left to seal, all together is more than an archive may hold, a path
// does not exist, or the archive cannot be written.
Seal seal_files(const SealRequest& request);

}  // namespace tprimat::results
