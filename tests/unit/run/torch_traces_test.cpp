#include "run/torch_traces.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
#include "trace/profile_summary.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

class TorchTraces : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  void put(const std::string& name, const std::string& text = "[]") const {
    write_file_atomically(folder_ / name, text);
  }

  const fs::path folder_ = fs::temp_directory_path() / ("torch traces " + std::to_string(::getpid()));
};

TEST_F(TorchTraces, AreFoundByTheNamesThatFrameworksGiveThem) {
  EXPECT_TRUE(find_torch_traces(folder_).empty());
  EXPECT_TRUE(find_torch_traces(folder_ / "nowhere").empty());
  put("train_spec.json");
  put("primus/a/tensorboard/primus-megatron-exp[llama]-rank[1].5.pt.trace.json.gz");
  put("primus/a/tensorboard/primus-megatron-exp[llama]-rank[0].9.pt.trace.json.gz");
  const auto traces = find_torch_traces(folder_);
  ASSERT_EQ(traces.size(), 2u);
  EXPECT_NE(traces[0].string().find("rank[0]"), std::string::npos) << traces[0];
}

TEST_F(TorchTraces, OfMegatronLieBesideTheFolderOfTensorBoard) {
  put("torch_profile/torch_profile/rank-0.json.gz");
  put("torch_profile/tensorboard/events.out.tfevents.1.host");
  put("data_cache/rank-0.json");
  const auto traces = find_torch_traces(folder_);
  ASSERT_EQ(traces.size(), 1u);
  EXPECT_EQ(traces[0].filename(), "rank-0.json.gz");
}

TEST_F(TorchTraces, APlainOneIsCompressed) {
  const std::string text = R"([{"ph": "X", "cat": "cpu_op", "name": "mm", "ts": 1, "dur": 2}])";
  put("host_1.2.pt.trace.json", text);
  move_torch_trace(folder_ / "host_1.2.pt.trace.json", folder_ / "trace.json.gz");
  EXPECT_TRUE(read_file(folder_ / "trace.json.gz").starts_with("\x1f\x8b"));
  EXPECT_EQ(logs::summarise_profile(folder_ / "trace.json.gz").host->calls, 1);
  EXPECT_FALSE(fs::exists(folder_ / "host_1.2.pt.trace.json"));
  put("other.pt.trace.json.gz", "as it is");
  move_torch_trace(folder_ / "other.pt.trace.json.gz", folder_ / "trace.json.gz");
  EXPECT_EQ(read_file(folder_ / "trace.json.gz"), "as it is");
}

}  // namespace
}  // namespace tprimat::suite
