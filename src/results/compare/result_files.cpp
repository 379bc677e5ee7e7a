#include "compare/result_files.h"

#include <algorithm>

#include "base/files.h"
#include "result/result_file.h"

namespace tprimat::results {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with("."); }

bool is_candidate(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.path().extension() == ".json" && !entry.path().filename().string().starts_with("profile_") &&
         entry.is_regular_file(ignored);
}

std::vector<fs::path> list_tree(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator walk(folder, fs::directory_options::skip_permission_denied, error);
  if (error) throw fs::filesystem_error("cannot be read", folder, error);
  for (; walk != fs::recursive_directory_iterator(); walk.increment(error)) {
    if (error) break;
    if (is_hidden(walk->path()))
      walk.disable_recursion_pending();
    else if (is_candidate(*walk))
      files.push_back(walk->path());
  }
  return files;
}

std::vector<fs::path> list_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (is_candidate(entry)) files.push_back(entry.path());
  return files;
}

}  // namespace

std::vector<fs::path> list_result_files(const fs::path& folder, FolderReach reach) {
  std::vector<fs::path> files = reach == FolderReach::itself ? list_folder(folder) : list_tree(folder);
  std::sort(files.begin(), files.end());
  return files;
}

ReadOutcome read_result_file(const fs::path& path, const std::function<bool(const std::string&)>& wants) {
  ReadOutcome outcome;
  try {
    const std::string text = read_file(path);
    if (!wants || wants(text)) outcome.result = read_run_result(text, path);
  } catch (const Error& error) {
    outcome.problems = error.problems();
  }
  return outcome;
}

}  // namespace tprimat::results
