#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "example_data.h"
#include "trace/profile_summary.h"
#include "trace/trace.h"

namespace tprimat::logs {
namespace {

std::vector<std::filesystem::path> samples_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().string().ends_with(".json.gz")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// Each file of the folder is read, with all of its work on GPUs and what launched it.
TEST(SampleTraces, AreAllRead) {
  const auto folder = std::filesystem::path(TPRIMAT_SHARED_DATA) / "traces";
  SKIP_WITHOUT_EXAMPLE_DATA(folder);
  const auto files = samples_of(folder);
  EXPECT_GE(files.size(), 6u);
  for (const auto& file : files) {
    const Trace trace = read_trace(file, TraceContent::everything);
    EXPECT_GT(trace.events.size(), 0u) << file;
    EXPECT_EQ(trace.unusable_events, 0) << file;
    EXPECT_FALSE(render_profile(summarise_profile(file)).empty()) << file;
  }
}

}  // namespace
}  // namespace tprimat::logs
