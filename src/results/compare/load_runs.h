#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "compare/comparison.h"
#include "result/run_result.h"

namespace tprimat::results {

struct LoadedRuns {
  std::vector<LoadedRun> runs;  // in the order of the paths, directories sorted by name; a file named twice counts once
  std::vector<SkippedFile> skipped;
  bool all_series = true;  // false: for many runs, only the series that a comparison needs are kept
};

// Loads files and directories (their *.json that are results; `skipped` names the others). Throws Error for a path that
// does not exist and for a file that was named explicitly and is not a result.
LoadedRuns load_runs(const std::vector<std::string>& paths);

// Counted before per-step records are dropped.
SkippedUpdates skipped_updates(const LoadedRun& run);

enum class FolderReach {
  itself,        // files that lie in the folder
  whole_of_tree  // in the folders below it, too; hidden ones are left out
};

// Files that may be results, by name; none of them is read. Summaries of profiled runs are excluded. A broken link or a
// loop of links is skipped and does not hide other files. Throws std::filesystem::filesystem_error where the folder
// cannot be read.
std::vector<std::filesystem::path> list_result_files(const std::filesystem::path& folder, FolderReach reach);

// A result, or why the file is not one; neither if its text was not wanted.
struct ReadOutcome {
  std::optional<RunResult> result;
  std::vector<Problem> problems;
};

// `wants`: whether a text needs to be parsed; absent: every one does.
ReadOutcome read_result_file(const std::filesystem::path& path,
                             const std::function<bool(const std::string&)>& wants = {});

}  // namespace tprimat::results
