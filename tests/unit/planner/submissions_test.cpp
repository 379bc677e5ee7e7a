// Rows of MLPerf Training and of AMD's programs: what their sources leave open.

#include <gtest/gtest.h>

#include <string>

#include "example_data.h"
#include "planner/plan_validation.h"
#include "planner/published_workload.h"
#include "planner/time_to_target.h"

namespace tprimat::planner {
namespace {

PublishedTable steps_of(const std::string& rows) {
  return parse_published_table(
      "model\tseq\tgpu\tn_gpus\tframework\tprecision\tgbs\tmbs\tga\ttp\tpp\tcp\trecompute\tstep_time_"
      "s\tnotes\tsource\n" +
          rows,
      "steps.tsv");
}

PublishedWorkload read_step(const std::string& row) { return read_published_workload(steps_of(row).rows.front()); }

constexpr const char* k_tuned =
    "Llama 2 70B (LoRA)\t8192\tMI325X\t8\tMLPerf v5.1 PyTorch, ROCm 7.0.1\tFP8\t8\t1\t1\t1\t1\t1\tnone\t2.82\tLoRA\t"
    "mlcommons/training_results_v5.1 A/results/B/llama2_70b_lora@441d65f\n";

TEST(Submissions, AdaptersAreTrainedByNemoInTheirRound) {
  const PublishedWorkload read = read_step(k_tuned);
  ASSERT_EQ(read.missing, "");
  EXPECT_TRUE(read.workload.trains_adapters);
  EXPECT_EQ(read.workload.family->id, "mlperf");
  EXPECT_EQ(read.workload.release, "v5.1-cdna");
  EXPECT_EQ(read.workload.precision, PlanPrecision::fp8);
  EXPECT_EQ(read.workload.layout.data, 8);
  EXPECT_EQ(read.workload.document_length, 0);
  EXPECT_EQ(read.weak, "");
  EXPECT_TRUE(read.assumptions.empty());
}

PublishedWorkload read_open(const std::string& model, const std::string& gpu, const std::string& framework,
                            const std::string& counts) {
  return read_step(model + "\t8192\t" + gpu + "\t" + framework + "\t\t" + counts + "\t\t\t\t\t1.5\t\t\n");
}

TEST(Submissions, TheLayoutFollowsFromBatchAndAccumulation) {
  const auto layout = [](const PublishedWorkload& read) {
    EXPECT_EQ(read.missing, "");
    return read.workload.layout;
  };
  const Layout spread = layout(read_open("Llama 2 70B (LoRA)", "GB200\t64", "MLPerf v5.0 NGC", "8\t\t1"));
  EXPECT_EQ(spread.tensor, 1);
  EXPECT_EQ(spread.context, 8);
  EXPECT_EQ(spread.data, 8);
  const Layout small = layout(read_open("Llama 2 70B (LoRA)", "H100-SXM5-80GB\t16", "MLPerf v4.1 NGC", "8\t\t4"));
  EXPECT_EQ(small.tensor, 4);
  EXPECT_EQ(small.context, 2);
  const Layout halved = layout(read_open("Llama 3.1 8B", "MI350X\t8", "MLPerf v5.1 PyTorch", "32\t\t2"));
  EXPECT_EQ(halved.micro_batch, 2);
  EXPECT_EQ(halved.tensor * halved.context, 1);
}

TEST(Submissions, WhatIsOpenIsRefusedWithItsReason) {
  EXPECT_EQ(read_open("Llama 2 70B (LoRA)", "A100-SXM4-80GB\t64", "MLPerf v4.0 Deepspeed N8", "64\t\t1").missing,
            "no layout: how its DeepSpeed shares the weights is not published");
  EXPECT_EQ(read_open("Llama 3.1 8B", "B300-SXM-270GB\t8", "MLPerf v5.1 PyTorch", "16\t\t1").missing,
            "no precision: submissions of its round train in FP8 and in NVFP4");
  EXPECT_EQ(read_open("GPT-3 175B", "H100-SXM5-80GB\t512", "MLPerf v4.0 NeMo", "2048\t\t64").missing, "no layout");
  EXPECT_EQ(read_open("GPT-3 175B", "TPU v5p\t4096", "MLPerf v4.1 maxtext", "4096\t\t").missing,
            "no such GPU in the planner's list");
  EXPECT_EQ(read_open("GPT-3 175B", "H100\t4096", "MLPerf v4.1 maxtext", "4096\t\t").missing,
            "no such framework in the planner's list");
  EXPECT_EQ(read_open("Llama 2 70B (LoRA)", "B200-SXM-180GB\t8", "MLPerf v5.1 PyTorch", "8\t\t1").weak,
            "its precision is not published");
}

constexpr const char* k_benchmarks =
    "round\tgpu\tn_gpus\tbenchmark\tframework\tgbs\tga\tseq\ttp\tpp\tcp\tprecision_hint\tconfig_file\t"
    "ttt_min_olympic_mean\tstep_time_s_median\tthroughput_median\tthroughput_unit\tnotes\n"
    "v5.1\tAMD Instinct MI355X\t8\tllama2_70b_lora\tPyTorch\t8\t1\t8192\t\t\t\t\tconfig_MI355X_1x8x1.sh\t10.2\t\t5.83\t"
    "samples/s\t\n"
    "v5.1\tNVIDIA Blackwell GPU "
    "(GB200)\t8\tllama31_8b\tNeMo\t16\t1.0\t8192\t1\t1\t1\tfp4\tconfig_8b_fp4.sh\t79.3\t0.4057"
    "\t\t\t\n"
    "v4.1\tNVIDIA "
    "H100-SXM5-80GB\t11616\tgpt3\tNeMo\t2904\t6\t2048\t4\t6\t\t\tconfig_1452x8x6x4x6_mbs1_cg.sh\t3.4\t\t\t\t"
    "\n"
    "v5.1\tNVIDIA H100-SXM5-80GB\t8\tretinanet\tPyTorch\t16\t1\t\t\t\t\t\t\t3.4\t0.1\t\t\t\n";

TEST(Submissions, ATableByBenchmarkIsRead) {
  const PublishedTable table = parse_published_table(k_benchmarks, "mlperf.tsv");
  const PublishedWorkload tuned = read_published_workload(table.rows[0]),
                          narrow = read_published_workload(table.rows[1]),
                          large = read_published_workload(table.rows[2]);
  ASSERT_EQ(tuned.missing, "");
  EXPECT_NEAR(tuned.tokens_per_second_per_gpu, 5.83 * 8192 / 8, 1e-2);
  EXPECT_EQ(tuned.workload.precision, PlanPrecision::fp8);
  EXPECT_EQ(narrow.workload.precision, PlanPrecision::fp4);
  EXPECT_EQ(narrow.workload.layout.micro_batch, 2);
  EXPECT_EQ(large.missing, "no rate");
  EXPECT_EQ(large.workload.layout.data, 484);
  EXPECT_NE(read_published_workload(table.rows[3]).missing, "");
}

TEST(Submissions, TimeToTrainIsStepsAndEvaluations) {
  const PublishedTable table = parse_published_table(k_benchmarks, "mlperf.tsv");
  const PlannedTable planned = plan_table(table, built_in_parameters());
  const PlannedRow& row = planned.rows.front();
  ASSERT_TRUE(row.minutes && row.published_minutes && row.minutes_error && row.predicted);
  EXPECT_DOUBLE_EQ(*row.published_minutes, 10.2);
  const double step = 8 * 8192 / (*row.predicted * 8);
  // 3179 samples, and 5.28 evaluations of 173 that cost half
  EXPECT_NEAR(*row.minutes, (3179 + (1 + (3179 - 1536) / 384.0) * 173 / 2) / 8 * step / 60, 1e-9);
}

TEST(SamplesToTarget, AreInterpolatedBetweenBatchesAndAbsentBeyond) {
  const TargetTask tuned{"llama2_70b_lora", "v5.1"};
  EXPECT_EQ(samples_to_target(tuned, 8), 3179);
  EXPECT_EQ(samples_to_target(tuned, 12), (3179 + 4032) / 2.0);
  EXPECT_EQ(samples_to_target(tuned, 4), std::nullopt);
  EXPECT_EQ(samples_to_target(tuned, 129), std::nullopt);
  EXPECT_EQ(samples_to_target({"llama31_8b", "v5.0"}, 16), std::nullopt);
  EXPECT_EQ(samples_to_target({"gpt3", "v4.0"}, 2048), 577536);
  EXPECT_EQ(samples_to_target({"gpt3", "v4.1"}, 2048), 575078);
  EXPECT_EQ(samples_to_target({"", ""}, 8), std::nullopt);
}

TEST(Recipes, OfPrimusSayWhatItsRowsLeaveOpen) {
  const auto read = [](const std::string& row) {
    return read_published_workload(
        parse_published_table("model\tgpu\tn_gpus\tframework\tpp\tvp\ttokens_per_s_per_gpu\tnotes\tsource\n" + row,
                              "own.tsv")
            .rows.front());
  };
  const std::string source = "AMD-AGI/Primus docs_deprecated/tech_blogs/primus_pipeline/primus_pipeline.md@fd1eeab\n";
  const PublishedWorkload cut =
      read("Llama 2 7B\tMI300X\t8\tPrimus Megatron-LM\t8\t2\t10974\tpipeline schedule 1f1b-interleaved\t" + source);
  ASSERT_EQ(cut.missing, "");
  EXPECT_EQ(cut.workload.sequence_length, 4096);
  EXPECT_EQ(cut.workload.global_batch, 32);
  EXPECT_FALSE(cut.weak.empty());
  EXPECT_FALSE(cut.assumptions.empty());
  EXPECT_EQ(read("Llama 2 7B\tMI300X\t8\tPrimus Megatron-LM\t8\t2\t8897\tpipeline schedule v-min\t" + source).missing,
            "a pipeline schedule that the planner does not simulate");
}

// Enough of AMD's dense rows are measured well enough to be fitted.
TEST(PublishedTables, HoldDenseRowsOfAmd) {
  SKIP_WITHOUT_EXAMPLE_DATA(TPRIMAT_SHARED_DATA "/published/mlperf_steps.tsv");
  int64_t rows = 0;
  for (const char* name : {"mlperf_steps", "amd_perf"}) {
    const PublishedTable table = load_published_table(std::string(TPRIMAT_SHARED_DATA "/published/") + name + ".tsv");
    for (const Observation& each : observations_of(table))
      rows += each.machine.architecture.starts_with("cdna") && !each.workload.shape.experts ? 1 : 0;
  }
  EXPECT_GE(rows, 25);
}

}  // namespace
}  // namespace tprimat::planner
