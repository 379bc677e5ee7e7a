#include "launch/torch_build.h"

#include <fstream>
#include <string_view>

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

constexpr int k_max_lines = 200;  // torch/version.py has a dozen

// "cuda: Optional[str] = '13.0'" -> "13.0"; empty for None and for lines of other names.
std::string value_of(std::string_view line, std::string_view name) {
  if (!line.starts_with(name)) return "";
  const std::string_view rest = line.substr(name.size());
  if (!rest.starts_with(' ') && !rest.starts_with(':') && !rest.starts_with('=')) return "";
  const size_t equals = rest.find('=');
  const size_t start = equals == std::string_view::npos ? equals : rest.find_first_of("'\"", equals);
  if (start == std::string_view::npos) return "";
  const size_t end = rest.find(rest[start], start + 1);
  return end == std::string_view::npos ? "" : std::string(rest.substr(start + 1, end - start - 1));
}

TorchBuild read_version_file(const fs::path& path) {
  TorchBuild build;
  std::ifstream file(path);
  std::string line;
  for (int lines = 0; lines < k_max_lines && std::getline(file, line); ++lines) {
    if (std::string cuda = value_of(line, "cuda"); !cuda.empty()) build.cuda = std::move(cuda);
    if (std::string rocm = value_of(line, "hip"); !rocm.empty()) build.rocm = std::move(rocm);
  }
  return build;
}

}  // namespace

TorchBuild find_torch_build(const fs::path& prefix) {
  std::error_code failure;
  for (const auto& python : fs::directory_iterator(prefix / "lib", failure))
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const fs::path path = python.path() / packages / "torch" / "version.py";
      std::error_code unreadable;
      if (fs::is_regular_file(path, unreadable)) return read_version_file(path);
    }
  return {};
}

}  // namespace tprimat::suite
