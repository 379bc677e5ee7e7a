// The facts that people read in real logs by eye, against what is extracted from them. The logs lie outside the
// project.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "example_data.h"
#include "extract/to_result.h"

namespace tprimat::logs {
namespace {

constexpr const char* k_folder = TPRIMAT_SHARED_DATA;

// -1, and an unknown figure, mean: the manifest does not tell.
struct Expectation {
  const char* path;
  const char* format;
  int64_t records;  // reports of steps, copies included
  int64_t steps;    // steps and attempts
  int64_t first, last;
  int64_t named_step;
  Figure seconds, loss;
  const char* gpu = "";
  int64_t gpus = -1;
};

constexpr Expectation k_expected[] = {
    {"megatron/bigscience_meg_gpt2_perf_n16.log", "megatron", 3, 3, 1, 3, 2, 129.0288, {}, "", 64},
    {"megatron/hwang_gpt2_345m_tp4_mcore05.log", "megatron", 20, 20, 10, 200, 100, 0.3957, 8.766370, "", 4},
    {"megatron/hwang_gpt2_345m_tp4_mcore09_failed.log", "megatron", 5, 5, 10, 50, 30, 0.4642, 10.77634, "", 4},
    {"megatron/aist_mdk_gpt7b_1node_fragment.log", "megatron", 6, 6, 10, 60, 30, 12.0688, 8.995420},
    {"megatron_deepspeed/bigscience_meg_ds_3d_n16_ds_on.log", "megatron_deepspeed", 49, 49, 1, 49, 49, 136.3288,
     7.747273, "", 64},
    {"megatron_deepspeed/bigscience_tr11_176B_loss_spike_fragment.log", "megatron_deepspeed", 11, 11, 31214, 31251,
     31214, 106.46, 2.198845},
    {"megatron_deepspeed/bigscience_tr11_176B_wrapped_fragment.log", "megatron_deepspeed", 5, 5, 42780, 42784, 42784,
     111.14, 2.127643},
    {"megatron_deepspeed/bigscience_tr11_176B_valid_fragment.log", "megatron_deepspeed", 1, 1, 45000, 45000, 45000,
     111.0, 2.113567},
    {"megatron_deepspeed/bigscience_tr1_13B_loss_spike_fragment.log", "", 8, 8, 29020, 29090, 29050, 22.1485, 7.343709},
    {"megatron_deepspeed/gptneox_70M_512step_head.log", "gpt_neox", 257, 257, 1, 257, 10, 0.5969, 9.730293, "", 8},
    {"deepspeed/dschat_step1_opt1.3b.log", "deepspeed", 736, 736, 10, 7360, 10, {}, {}},
    {"deepspeed/dschat_step3_rlhf.log", "deepspeed_rlhf", 477, 477, 0, 476, 0, 7.99, {}},
    {"hf_trainer/bigscience_hf_ds_gpt2_base_n4.log", "hf_trainer", -1, 16, 1, 16, -1, {}, {}},
    {"hf_trainer/glue_mrpc_grad_norm_fragment.log", "hf_trainer", 4, 4, -1, -1, -1, {}, {}},
    {"hf_trainer/trainer_state_45steps.json", "trainer_state", -1, 4, 10, 40, 20, {}, 1.2565},
    {"primus/ut_megatron_deepseek_v2_lite.log", "primus", 3, 3, 1, 3, 3, 0.4956, 11.56762, "", 8},
    {"primus/ut_megatron_interleaved_pipeline_parallelism.log", "primus", 3, 3, 1, 3, 3, 0.8465, 11.43753, "", 8},
    {"primus/ut_megatron_llama3_70B.log", nullptr, 0, 0, -1, -1, -1, {}, {}, "", 8},
    {"primus/ut_torchtitan_llama3_8B-BF16.log",
     "primus_torchtitan",
     3,
     3,
     1,
     3,
     3,
     {},
     23.5772,
     "AMD Instinct MI300X",
     8},
    {"primus/ut_torchtitan_llama3.1_70B_FP8.log",
     "primus_torchtitan",
     3,
     3,
     1,
     3,
     3,
     {},
     9.6786,
     "AMD Instinct MI300X",
     8},
    {"primus/ut_torchtitan_deepseek_v3_16b.log",
     "primus_torchtitan",
     1,
     1,
     1,
     1,
     1,
     {},
     12.0594,
     "AMD Instinct MI300X",
     8},
    {"primus/dsv4_p57r2_proxy_trace.log", "primus", 10, 10, 1, 10, 10, 0.4326, 9.224617, "", 8},
    {"primus/pilot_dsv2_lite_fp8_mi355x_tail.log", "primus", 40, 20, 1, 20, 10, 32.0249, 7.422081, "", 8},
    {"primus/pr169_rocm_mem_fragment.log", "primus", 1, 1, 5, 5, 5, 1.5955, 9.732306, "", 8},
    {"primus/safe_esc_stripped_line_fragment.log", "primus", 1, 1, 126, 126, 126, 13.3728, 6.548988E-03, "", 8},
    {"nemo/nemo2_resiliency_cell14_stdout.log", "nemo2", 20, 20, 0, 19, 10, 7.568, 11.03, "", 8},
    {"nemo/nemo2_resiliency_cell22_stdout.log", "nemo2", 26, 26, 0, 19, -1, {}, {}, "", 8},
    {"nemo/nemo2_resiliency_cell29_stdout.log", "nemo2", 16, 16, 0, 15, 15, 7.611, {}, "", 8},
    {"nemo/nemo2_resiliency_cell36_stdout.log", "nemo2", 20, 20, 0, 19, 10, 7.633, {}, "", 8},
    {"nemo/nemo1_progress_bar_gcp_llama2_7b_fragment.log", "nemo1", 1, 1, 5, 5, 5, 49.50, 11.50},
    {"nemo/nemo1_progress_bar_dgxc_final_lines_fragment.log", "nemo1", 4, 4, 49, 99, -1, {}, {}},
    {"nemo/nemo1_peft_caretM_fragment.log", "nemo1", -1, 1, 2000, 2000, 2000, 68.70, {}},
    {"nemo/nemo1_gpt3_126m_aws_fragment.log", "nemo1", 1, 1, 39, 39, 39, {}, 10.90},
    {"megatron_bridge/qwen3_235b_gb200_64gpu_steptime_fragment.log", "megatron_bridge", 20, 20, 1, 20, 5, 6.54, {}},
    {"torchtitan/autoresearch_qwen3_14b_run275.log", "torchtitan", 10, 10, 1, 10, 10, {}, 5.55888, "NVIDIA B200", 8},
    {"torchtitan/autoresearch_qwen3_14b_run230.log", "torchtitan", 10, 10, 1, 10, 2, {}, 2.75107, "NVIDIA B200", 8},
    {"torchtitan/autoresearch_qwen3_14b_run44.log", nullptr, 0, 0, -1, -1, -1, {}, {}, "NVIDIA B200", 8},
    {"torchtitan/pr950_2025-03_no_grad_norm_fragment.log", "torchtitan", 4, 4, 22, 25, 23, {}, 6.2236},
    {"torchtitan/pr2389_8ranks_same_step_no_prefix_fragment.log", "torchtitan", 7, 1, 4, 4, 4, {}, 7.62585},
    {"llmc/llmkittens_sm120_x10_stdout.log", "llmc", 10, 10, 1, 10, 1, 2.47001, 11.032358},
    {"llmc/a800_unknown_gpu_mfu_minus100_fragment.log", "llmc", 5, 5, 1, 5, 2, 2.39152, 10.829729,
     "NVIDIA A800 80GB PCIe"},
    {"llmc/modded_nanogpt_2024-10-13_llmc_main_head.log", "llmc_main", 3770, 3770, 0, 3769, 99, {}, 7.1450},
    {"llmc/modded_nanogpt_track2_2025-01-18_main.log", "llmc_main", 0, 0, -1, -1, -1, {}, {}},
    {"other/modded_nanogpt_2024-06-06_AdamW_head.log", "llmc_main", 2039, 2039, 0, 2038, 1, {}, 10.814037},
    {"other/modded_nanogpt_2025-01-04_SoftCap.txt", "modded_nanogpt", -1, 1390, 1, 1390, -1, {}, {}},
    {"mlperf/v3.0_NVIDIA_dgxh100_n64_gpt3_result_0.txt", "mlperf", -1, -1, -1, -1, -1, {}, {}},
    {"mlperf/v5.0_AMD_MI300X_llama2_70b_lora_result_0.txt", "mlperf", -1, -1, -1, -1, -1, {}, {}},
    {"mlperf/v5.0_NVIDIA_eos-dfw_n64_llama31_405b_result_0.txt", "mlperf", -1, -1, -1, -1, -1, {}, {}},
    {"mlperf/v5.0_tinycorp_8xMI300X_bert_result_0.txt", "mlperf", 0, 0, -1, -1, -1, {}, {}},
    {"mlperf/v5.1_Dell_8xB200_llama2_70b_lora_result_0.txt", "mlperf", -1, -1, -1, -1, -1, {}, {}},
    {"mlperf/v5.1_Krai_2x8H200_llama2_70b_lora_result_1.txt", "mlperf", 33, 33, -1, -1, -1, {}, {}},
    {"nanotron/issue390_fragment.log", "nanotron", 4, 4, 327281, 327284, 327281, 11.5, 2.38},
    {"nanotron/pr23_fragment.log", "nanotron", 3, 3, 991, 993, 991, 0.272, 9.63},
    {"nanotron/issue233_fragment.log", "nanotron", 1, 1, 12001, 12001, 12001, 28.2, 2.3},
    {"composer/aws_mpt_slurm_prefix_fragment.log", "composer", 1, 1, 1, 1, 1, {}, 12.0},
    {"litgpt/0_to_litgpt_lora_phi2_fragment.log", "litgpt", 10, 5, 1, 5, -1, {}, {}},
    {"failures/dschat_check7b_killed.log", nullptr, 0, 0, -1, -1, -1, {}, {}},
    {"failures/primus_ut_torchtitan_deepseek_v3_671b.log", nullptr, 0, 0, -1, -1, -1, {}, {}},
    {"failures/bigscience_tr11_176B_gpu_crash_fragment.log", nullptr, 0, 0, -1, -1, -1, {}, {}},
    {"failures/bigscience_tr1_13B_cuda_oom_fragment.log", nullptr, 0, 0, -1, -1, -1, {}, {}},
    {"failures/ml_engineering_cuda_oom_fragment.log", nullptr, 0, 0, -1, -1, -1, {}, {}},
    {"failures/ml_engineering_nccl_desync_fragment.log", nullptr, 0, 0, -1, -1, -1, {}, {}},
    {"failures/nccl_watchdog_8rank_broadcast_fragment.log", nullptr, 0, 0, -1, -1, -1, {}, {}},
    {"failures/megatron_deepspeed_issue396_nan_grad_fragment.log",
     "megatron_deepspeed",
     3,
     3,
     5426,
     5428,
     5427,
     4.2258,
     {}},
    {"failures/torchrun_sigkill_medusa_fragment.log", nullptr, 0, 0, -1, -1, -1, {}, {}},
};

std::filesystem::path log_path(const Expectation& expected) {
  return std::filesystem::path(k_folder) / "logs" / expected.path;
}

const ExtractedStep* find_step(const ExtractedLog& log, int64_t number) {
  for (auto step = log.steps.rbegin(); step != log.steps.rend(); ++step)
    if (step->step == number) return &*step;
  return nullptr;
}

void check_named_step(const ExtractedLog& log, const Expectation& expected) {
  if (expected.named_step < 0) return;
  const ExtractedStep* step = find_step(log, expected.named_step);
  ASSERT_NE(step, nullptr);
  if (expected.seconds) {
    EXPECT_NEAR(step->time_seconds.value_or(-1), *expected.seconds, 1e-9 + 1e-6 * *expected.seconds);
  }
  if (expected.loss) {
    EXPECT_NEAR(step->loss.value_or(-1), *expected.loss, 1e-6 * *expected.loss);
  }
}

class Manifest : public testing::TestWithParam<Expectation> {};

TEST_P(Manifest, FactsReadByEyeAreExtracted) {
  const Expectation& expected = GetParam();
  SKIP_WITHOUT_EXAMPLE_DATA(log_path(expected));
  const ReadLog read = read_log(log_path(expected), {});
  if (expected.format != nullptr && *expected.format != '\0') {
    ASSERT_NE(read.dialect, nullptr);
    EXPECT_EQ(read.dialect->id, expected.format);
  }
  if (expected.records >= 0) {
    EXPECT_EQ(read.log.records, expected.records);
  }
  if (expected.steps >= 0) {
    EXPECT_EQ(static_cast<int64_t>(read.log.steps.size()), expected.steps);
  }
  if (expected.first >= 0) {
    ASSERT_FALSE(read.log.steps.empty());
    EXPECT_EQ(read.log.steps.front().step, expected.first);
    EXPECT_EQ(read.log.steps.back().step, expected.last);
  }
  check_named_step(read.log, expected);
  if (*expected.gpu != '\0') {
    EXPECT_EQ(read.log.facts.gpu_name.value_or(""), expected.gpu);
  }
  if (expected.gpus >= 0) {
    EXPECT_EQ(read.log.facts.gpu_count.value_or(-1), expected.gpus);
  }
}

INSTANTIATE_TEST_SUITE_P(Logs, Manifest, testing::ValuesIn(k_expected), [](const auto& test) {
  std::string name = test.param.path;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

// Every log of the manifest is in the table, and the table's figures stand in the manifest.
TEST(ManifestTable, CoversEveryLog) {
  const std::filesystem::path path_of_manifest = std::filesystem::path(k_folder) / "logs" / "MANIFEST.tsv";
  SKIP_WITHOUT_EXAMPLE_DATA(path_of_manifest);
  std::ifstream manifest(path_of_manifest);
  std::set<std::string> known;
  for (const Expectation& each : k_expected) known.insert(each.path);
  size_t logs = 0;
  for (std::string line; std::getline(manifest, line);) {
    if (line.substr(0, 5) != "logs/") continue;
    ++logs;
    const std::string path = line.substr(5, line.find('\t') - 5);
    EXPECT_EQ(known.count(path), 1u) << path;
  }
  EXPECT_EQ(logs, known.size());
}

// Nothing that the folder holds may crash the reader or yield a figure without ground.
TEST(ManifestTable, EveryFigureIsPlausible) {
  const std::filesystem::path folder = std::filesystem::path(k_folder) / "logs";
  SKIP_WITHOUT_EXAMPLE_DATA(folder);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const RunResult result = make_result(read_log(entry.path(), {}), entry.path().string(), {});
    for (const double seconds : result.step_times) EXPECT_FALSE(seconds <= 0 || seconds > 1e5) << entry.path();
    for (const double loss : result.loss_values) EXPECT_FALSE(loss < -10 || loss > 1e4) << entry.path();
    if (result.derived.mfu) {
      EXPECT_LT(result.derived.mfu->value, 1) << entry.path();
    }
    if (result.reported && result.reported->mfu)
      for (const double mfu : *result.reported->mfu) {
        EXPECT_FALSE(mfu < 0 || mfu > 1) << entry.path();
      }
  }
}

}  // namespace
}  // namespace tprimat::logs
