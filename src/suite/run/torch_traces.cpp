#include "run/torch_traces.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

bool is_torch_trace(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.find(".pt.trace.json") != std::string::npos) return true;
  return path.parent_path().filename() == "torch_profile" && name.starts_with("rank-") &&
         name.find(".json") != std::string::npos;
}

bool is_of_rank_0(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("rank-0.") || name.find("rank[0]") != std::string::npos;
}

// In pieces: a trace of some GPU steps has hundreds of megabytes.
void compress(std::string_view bytes, const fs::path& target) {
  constexpr size_t k_piece = 1 << 20;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(target.c_str(), "wb1"), gzclose);
  bool ok = file != nullptr;
  for (; ok && !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), k_piece)))
    ok = gzwrite(file.get(), bytes.data(), static_cast<unsigned>(std::min(bytes.size(), k_piece))) > 0;
  if (!ok || gzflush(file.get(), Z_FINISH) != Z_OK)
    throw Error(Problem{"cannot write the compressed trace", target.string(), "free some disk space"});
}

}  // namespace

std::vector<fs::path> find_torch_traces(const fs::path& folder) {
  std::vector<fs::path> traces;
  std::error_code unreadable;
  constexpr auto k_options = fs::directory_options::skip_permission_denied;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, k_options, unreadable))
    if (entry.is_regular_file(unreadable) && is_torch_trace(entry.path())) traces.push_back(entry.path());
  std::sort(traces.begin(), traces.end());
  std::stable_partition(traces.begin(), traces.end(), is_of_rank_0);
  return traces;
}

void move_torch_trace(const fs::path& trace, const fs::path& target) {
  if (trace.extension() == ".gz") return fs::rename(trace, target);
  const fs::path part = target.string() + ".part";  // the trace appears whole
  {
    const MappedFile file(trace);
    const auto bytes = file.bytes();
    compress({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, part);
  }
  fs::rename(part, target);
  fs::remove(trace);
}

}  // namespace tprimat::suite
