#include "extract/log_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace tprimat::logs {

namespace fs = std::filesystem;

std::vector<fs::path> list_log_files(const fs::path& folder, const fs::path& except) {
  std::vector<fs::path> files;
  std::error_code error;
  for (auto each = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
       !error && each != fs::recursive_directory_iterator(); each.increment(error)) {
    const bool hidden = each->path().filename().string().starts_with('.');
    std::error_code ignored;
    if (hidden || (each->is_directory(ignored) && fs::equivalent(each->path(), except, ignored))) {
      if (each->is_directory(ignored)) each.disable_recursion_pending();
      continue;
    }
    if (each->is_regular_file(ignored)) files.push_back(each->path());
  }
  if (error) log_warning(fmt::format("{}: some entries cannot be listed: {}", folder.string(), error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace tprimat::logs
