// Each real log of a mixture of experts has its MFU by every formula, or states why not. The logs lie outside the
// project.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "example_data.h"
#include "extract/common/expert_settings.h"
#include "extract/read_log.h"
#include "extract/scan_text.h"
#include "extract/to_result.h"

namespace tprimat::logs {
namespace {

const std::filesystem::path k_logs = std::filesystem::path(TPRIMAT_SHARED_DATA) / "logs";

struct SparseLog {
  const char* path;
  const char* device;  // given with --device, where the log names none
  const char* why;     // there is no MFU, in a warning; "": it has one
  int64_t experts = 0, layers = 0, expert_parallel = 0;
  bool is_latent = false;
  std::optional<Routing> routing = {};
  std::optional<Dispatcher> dispatcher = {};
};

const SparseLog k_sparse_logs[] = {
    // The run left latent attention off, though the model of its name has it.
    {"primus/ut_megatron_deepseek_v2_lite.log", "MI300X", "", 64, 26, 8, false, Routing::balanced,
     Dispatcher::alltoall},
    {"primus/ut_megatron_deepseek_v2_lite.log", "", "the log names no GPU: add --device", 64, 26, 8, false,
     Routing::balanced, Dispatcher::alltoall},
    {"primus/ut_megatron_interleaved_pipeline_parallelism.log", "MI300X", "", 64, 7, 1, true, Routing::balanced,
     Dispatcher::alltoall},
    {"primus/pilot_dsv2_lite_fp8_mi355x_tail.log", "MI355X", "", 64, 26, 8, true, Routing::balanced,
     Dispatcher::deepep},
    {"primus/pilot_dsv2_lite_fp8_mi355x_tail.log", "", "the log names no GPU: add --device", 64, 26, 8, true,
     Routing::balanced, Dispatcher::deepep},
    // Compressed attention, and a shape that stands in a file which the log does not show.
    {"primus/dsv4_p57r2_proxy_trace.log", "MI355X", "its attention (compress_ratios", 0, 0, 8, false, std::nullopt,
     Dispatcher::deepep},
    {"primus/ut_torchtitan_deepseek_v3_16b.log", "", "no step after the warm-up has a time", 64, 3, 8, true},
    {"failures/primus_ut_torchtitan_deepseek_v3_671b.log", "", "no step after the warm-up has a time", 256, 3, 8, true},
    {"megatron_bridge/qwen3_235b_gb200_64gpu_steptime_fragment.log", "", nullptr}};  // step times alone

RunResult result_of(const SparseLog& log) {
  KnownFacts known;
  known.device = log.device;
  return make_result(read_log(k_logs / log.path, {}), log.path, known);
}

class SparseLogs : public testing::TestWithParam<SparseLog> {};

TEST_P(SparseLogs, HaveMfuOrAReason) {
  const SparseLog& log = GetParam();
  SKIP_WITHOUT_EXAMPLE_DATA(k_logs / log.path);
  const RunResult result = result_of(log);
  if (log.why == nullptr) {
    EXPECT_FALSE(result.derived.mfu);
    return;
  }
  const bool has_mfu = *log.why == '\0';
  EXPECT_EQ(result.derived.mfu.has_value(), has_mfu);
  EXPECT_EQ(result.derived.mfu_by_formula.size(), has_mfu ? 3u : 0u);
  EXPECT_TRUE(has_mfu || std::ranges::any_of(result.warnings, [&](const std::string& warning) {
                return contains(warning, "no MFU") && contains(warning, log.why);
              }));
  ASSERT_EQ(result.model_info.shape.has_value(), log.experts > 0);
  EXPECT_EQ(result.parallelism_config.expert_model_parallel_size, log.expert_parallel);
  const ExpertFigures experts = result.experts.value_or(ExpertFigures{});
  EXPECT_EQ(experts.routing, log.routing);
  EXPECT_EQ(experts.dispatcher, log.dispatcher);
  if (log.experts == 0) return;
  const ModelSpec& model = *result.model_info.shape;
  ASSERT_TRUE(model.experts);
  EXPECT_EQ(model.experts->count, log.experts);
  EXPECT_EQ(model.expert_layers(), log.layers);
  EXPECT_EQ(model.latent_attention.has_value(), log.is_latent);
}

INSTANTIATE_TEST_SUITE_P(Logs, SparseLogs, testing::ValuesIn(k_sparse_logs), [](const auto& test) {
  std::string name = std::string(test.param.path) + (*test.param.device == '\0' ? "" : "_with_device");
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

// torchtitan prints the parameters of the whole model, Megatron-LM those of its padded vocabulary or an estimate
// without norms and routers.
TEST(SparseLogsShapes, HaveTheParametersThatTheLogsPrint) {
  SKIP_WITHOUT_EXAMPLE_DATA(k_logs);
  for (const SparseLog& log : k_sparse_logs) {
    SKIP_WITHOUT_EXAMPLE_DATA(k_logs / log.path);
    const RunResult result = result_of(log);
    const auto printed = result.model_info.num_parameters;
    if (!result.model_info.shape || !printed) continue;
    const auto counted = static_cast<double>(count_parameters(*result.model_info.shape).total());
    const double tolerance = result.source.format == "primus" ? 2e-3 : 1e-6;
    EXPECT_NEAR(static_cast<double>(*printed) / counted, 1, tolerance) << log.path;
  }
}

TEST(SparseLogsShapes, BalancingLossesAreThoseAdded) {
  const SparseLog log = {"primus/pilot_dsv2_lite_fp8_mi355x_tail.log", "", ""};
  SKIP_WITHOUT_EXAMPLE_DATA(k_logs / log.path);
  const RunResult result = result_of(log);
  ASSERT_TRUE(result.experts && result.experts->aux_loss_values);
  EXPECT_EQ(result.experts->aux_loss_values->size(), result.step_times.size());
  EXPECT_NEAR(result.experts->aux_loss_values->front(), 26 * 0.001 * 1.000697, 1e-9);
  EXPECT_NEAR(result.experts->aux_loss.value_or(0), 26 * 0.001, 1e-3);
}

// No log of the folder that shows experts is missing above.
TEST(SparseLogsTable, CoversEveryLogWithExperts) {
  SKIP_WITHOUT_EXAMPLE_DATA(k_logs);
  std::set<std::string> known;
  for (const SparseLog& log : k_sparse_logs) known.insert(log.path);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(k_logs)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".log") continue;
    const ReadLog read = read_log(entry.path(), {});
    if (!shows_experts(read.log.settings)) continue;
    EXPECT_EQ(known.count(std::filesystem::relative(entry.path(), k_logs).string()), 1u) << entry.path();
  }
}

}  // namespace
}  // namespace tprimat::logs
