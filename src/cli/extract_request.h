#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/exit_status.h"
#include "cli/session.h"
#include "extract/to_result.h"

namespace tprimat {

inline constexpr std::string_view k_all_attempts = "all";

// The command line of `extract`.
struct ExtractRequest {
  std::vector<std::string> paths, telemetry;
  std::string output = "./output", format, platform, precision, attempt;
  KnownFacts known;
  int64_t devices = 0, batch = 0, length = 0, warmup = -1;
  bool list_formats = false, follow = false;
};

// One log as a result, with the telemetry that was named joined to its steps; with `--attempt all` a result of each
// attempt. Throws Error.
std::vector<RunResult> extract_log(const std::string& path, const ExtractRequest& request);

// Where the result of a single log goes by its name.
std::filesystem::path result_path(const RunResult& result, const std::string& log, const ExtractRequest& request);

// `wanted`, or the first of `wanted`_2, `wanted`_3 ... that neither is taken nor holds the result of another log or of
// a measured run; a warning tells which. Adds it to `taken`.
std::filesystem::path free_path(const std::filesystem::path& wanted, const RunResult& result,
                                std::set<std::filesystem::path>& taken);

// The same, free: a file that the user names is the user's to replace.
std::filesystem::path free_result_path(const RunResult& result, const std::string& log, const ExtractRequest& request,
                                       std::set<std::filesystem::path>& taken);

// Every file below a folder: one result each, a table of them, and the reason for each that gave nothing.
ExitStatus extract_folder(const std::filesystem::path& folder, const ExtractRequest& request, const Session& session);

// Keeps the result of a growing log current until the user ends it.
ExitStatus follow_log(const std::string& path, const ExtractRequest& request);

}  // namespace tprimat
