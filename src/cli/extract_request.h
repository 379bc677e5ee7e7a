#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/exit_status.h"
#include "cli/session.h"
#include "extract/to_result.h"

namespace tprimat {

// The command line of `extract`.
struct ExtractRequest {
  std::vector<std::string> paths, telemetry;
  std::string output = "./output", format, platform, precision;
  KnownFacts known;
  int64_t devices = 0, batch = 0, length = 0, warmup = -1;
  bool list_formats = false, follow = false;
};

// One log as a result, with the telemetry that was named joined to its steps. Throws Error.
RunResult extract_log(const std::string& path, const ExtractRequest& request);

// Where the result of a single log goes.
std::filesystem::path result_path(const RunResult& result, const std::string& log, const ExtractRequest& request);

// Every file below a folder: one result each, a table of them, and the reason for each that gave nothing.
ExitStatus extract_folder(const std::filesystem::path& folder, const ExtractRequest& request, const Session& session);

// Keeps the result of a growing log current until the user ends it.
ExitStatus follow_log(const std::string& path, const ExtractRequest& request);

}  // namespace tprimat
