#include "compare/load_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "result/result_file.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

// Summaries of profiled runs lie beside the results and are none. A broken link or a loop of links is no file; it does
// not hide the files beside it.
std::vector<fs::path> json_files(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().extension() == ".json" && !entry.path().filename().string().starts_with("profile_") &&
        entry.is_regular_file(ignored))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class Loader {
 public:
  void load(const std::string& path) {
    if (!fs::exists(path))
      throw Error(Problem{"does not exist", path, "give result files, or the directory that `tprimat run` wrote to"});
    if (fs::is_directory(path))
      load_directory(path);
    else if (is_new(path))
      loaded_.runs.push_back({path, load_run_result(path)});
  }

  LoadedRuns take() { return std::move(loaded_); }

 private:
  bool is_new(const fs::path& path) { return seen_.insert(fs::canonical(path)).second; }

  void load_directory(const fs::path& directory) {
    for (const fs::path& path : json_files(directory)) {
      if (!is_new(path)) continue;
      try {
        loaded_.runs.push_back({path.string(), load_run_result(path)});
      } catch (const Error& error) {
        loaded_.skipped.push_back({path.string(), error.problems().front().what});
      }
    }
  }

  LoadedRuns loaded_;
  std::set<fs::path> seen_;
};

}  // namespace

LoadedRuns load_runs(const std::vector<std::string>& paths) {
  Loader loader;
  std::vector<Problem> problems;
  for (const std::string& path : paths) {
    try {
      loader.load(path);
    } catch (const Error& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    } catch (const fs::filesystem_error& error) {
      problems.push_back({fmt::format("cannot be read: {}", error.code().message()), path, ""});
    }
  }
  if (!problems.empty()) throw Error(problems);
  return loader.take();
}

}  // namespace tprimat
