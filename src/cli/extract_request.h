#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "command_line/session.h"
#include "run/extracted_runs.h"

namespace tprimat::cli {

// The command line of `extract`.
struct ExtractRequest {
  std::vector<std::string> paths;
  std::string output, platform, precision, framework, attempt;
  suite::ExtractOptions options;
  int64_t devices = 0, batch = 0, length = 0, warmup = -1;
  bool list_formats = false, follow = false, names_output = false;
};

// Where the result of a single log goes by its name.
std::filesystem::path result_path(const RunResult& result, const std::string& log, const ExtractRequest& request);

// The same, free: a file that the user names is the user's to replace.
std::filesystem::path free_result_path(const RunResult& result, const std::string& log, const ExtractRequest& request,
                                       std::set<std::filesystem::path>& taken);

// A result whose figures are still to be derived, if the command line states nothing more about it.
std::optional<RunResult> take_plain_result(const std::string& path, const ExtractRequest& request);

// Where it goes when it is complete: back into its file, unless --output names another.
std::filesystem::path completed_path(const RunResult& result, const std::string& path, const ExtractRequest& request);

// Every file below a folder: one result each, a table of them, and the reason for each that gave nothing.
ExitStatus extract_folder(const std::filesystem::path& folder, const ExtractRequest& request, const Session& session);

// Warns of what a comparison would refuse the result for. What is merely missing, the summary shows.
void tell_contradictions(RunResult& result, const std::filesystem::path& target);

// The warnings of the result, and why it is not complete.
ExitStatus tell_outcome(const RunResult& result, const std::string& path);

// Keeps the result of a growing log current until the user ends it.
ExitStatus follow_log(const std::string& path, const ExtractRequest& request);

}  // namespace tprimat::cli
