#include "compare/load_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "result/result_file.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> json_files(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.is_regular_file() && entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

bool is_loaded(const LoadedRuns& loaded, const fs::path& path) {
  return std::any_of(loaded.runs.begin(), loaded.runs.end(), [&](const LoadedRun& run) {
    std::error_code ignored;
    return fs::equivalent(run.path, path, ignored);
  });
}

void load_directory(const fs::path& directory, LoadedRuns& loaded) {
  for (const fs::path& path : json_files(directory)) {
    if (is_loaded(loaded, path)) continue;
    try {
      loaded.runs.push_back({path.string(), load_run_result(path)});
    } catch (const Error& error) {
      loaded.skipped.push_back({path.string(), error.problems().front().what});
    }
  }
}

}  // namespace

LoadedRuns load_runs(const std::vector<std::string>& paths) {
  LoadedRuns loaded;
  std::vector<Problem> problems;
  for (const std::string& path : paths) {
    try {
      if (!fs::exists(path))
        problems.push_back({"does not exist", path, "give result files, or the directory that `tprimat run` wrote to"});
      else if (fs::is_directory(path))
        load_directory(path, loaded);
      else if (!is_loaded(loaded, path))
        loaded.runs.push_back({path, load_run_result(path)});
    } catch (const Error& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    } catch (const fs::filesystem_error& error) {
      problems.push_back({fmt::format("cannot be read: {}", error.code().message()), path, ""});
    }
  }
  if (!problems.empty()) throw Error(problems);
  return loaded;
}

}  // namespace tprimat
