#include <gtest/gtest.h>

#include <filesystem>

#include "example_data.h"
#include "planner/plan_validation.h"
#include "planner/published_workload.h"

namespace tprimat {
namespace {

PublishedTable table_of(const std::string& rows) {
  return parse_published_table(
      "model\tlayers\thidden\theads\tvocab\tseq\tgpu\tn_gpus\tframework\tprecision\tgbs\tmbs\ttp\tpp\tsharding\t"
      "recompute\tstep_time_s\tmem\tmem_unit\tnotes\n" +
          rows,
      "own.tsv");
}

TEST(PublishedWorkload, ReadsWhatARowPrints) {
  const auto table = table_of(
      "GPT\t96\t12288\t96\t51200\t2048\tA100-SXM-80GB\t64\tMegatron-LM\tfp16\t64\t1\t8\t8\t\tselective\t13.75\t\t\t\n");
  const PublishedWorkload read = read_published_workload(table.rows.front());
  ASSERT_EQ(read.missing, "");
  EXPECT_EQ(read.workload.layout.tensor, 8);
  EXPECT_EQ(read.workload.layout.data, 1);
  EXPECT_EQ(read.workload.layout.recompute, Recompute::selective);
  EXPECT_TRUE(read.workload.layout.sequence_parallel);
  EXPECT_NEAR(read.tokens_per_second_per_gpu, 64 * 2048 / 13.75 / 64, 1e-9);
}

TEST(PublishedWorkload, SaysWhyNothingCanBePredicted) {
  const auto missing = [](const std::string& row) {
    return read_published_workload(table_of(row).rows.front()).missing;
  };
  EXPECT_EQ(missing("GPT\t96\t12288\t96\t\t2048\tTPU\t64\tMegatron-LM\tfp16\t64\t1\t8\t8\t\t\t13\t\t\t\n"),
            "no such GPU in the planner's list");
  EXPECT_EQ(missing("GPT\t96\t12288\t96\t\t2048\tA100\t64\tJAX\tfp16\t64\t1\t8\t8\t\t\t13\t\t\t\n"),
            "no such framework in the planner's list");
  EXPECT_EQ(missing("GPT\t96\t12288\t96\t\t2048\tA100\t64\tMegatron-LM\tfp8\t64\t1\t8\t8\t\t\t13\t\t\t\n"),
            "no peak of its precision");
  EXPECT_EQ(missing("GPT\t96\t12288\t96\t\t2048\tA100\t64\tMegatron-LM\tfp16\t64\t1\t\t\t\t\t13\t\t\t\n"), "no layout");
  EXPECT_EQ(missing("GPT\t96\t12288\t96\t\t2048\tA100\t8\tMegatron-LM\tfp16\t64\t1\t8\t8\t\t\t13\t\t\t\n"),
            "a layout that does not multiply out");
  // Sizes whose product would not be held by 64 bits.
  EXPECT_EQ(missing("GPT\t96\t12288\t96\t\t2048\tA100\t64\tMegatron-LM\tfp16\t64\t1\t16777216\t65536\t\t\t13\t\t\t\n"),
            "a layout that does not multiply out");
  EXPECT_EQ(missing("GPT\t96\t12288\t96\t\t2048\tA100\t64\tMegatron-LM\tfp16\t64\t1\t\t\t\t\t13\t\t\t"
                    "model-parallel size 0\n"),
            "no layout");
  EXPECT_EQ(missing("GPT\t96\t12288\t96\t\t2048\tA100\t64\tMegatron-LM\tfp16\t\t\t8\t8\t\t\t13\t\t\t\n"), "no batch");
  EXPECT_EQ(missing("GPT\t96\t12288\t96\t\t2048\tA100\t64\tMegatron-LM\tfp16\t64\t1\t8\t8\t\t\t\t\t\t\n"), "no rate");
  EXPECT_EQ(missing("Mixtral 8x22B\t\t\t\t\t2048\tH100\t64\tNeMo\tbf16\t64\t1\t8\t8\t\t\t13\t\t\t\n"),
            "a mixture of experts");
}

TEST(PublishedWorkload, AGptsLayersFollowFromItsParameters) {
  const auto table = parse_published_table(
      "model\tparams\thidden\tseq\tgpu\tn_gpus\tframework\tgbs\tmbs\ttp\tpp\tstep_time_s\n"
      "GPT 181B\t181B\t14336\t2048\tA100-SXM-80GB\t384\tMegatron-DeepSpeed\t2048\t4\t8\t12\t123.7\n",
      "own.tsv");
  const PublishedWorkload read = read_published_workload(table.rows.front());
  ASSERT_EQ(read.missing, "");
  EXPECT_EQ(read.workload.shape.model.num_layers, 72);
  EXPECT_EQ(read.workload.shape.model.vocab_size, 250880);
}

// The figures that docs/planner.md states; fails when a change of the model makes the planner worse.
TEST(PlanValidation, KeepsItsWordOnPublishedTables) {
  const std::filesystem::path folder = std::filesystem::path(TPRIMAT_SHARED_DATA) / "published";
  SKIP_WITHOUT_EXAMPLE_DATA(folder);
  std::vector<PlannedTable> tables;
  for (const char* name : {"megatron_2104", "recompute_2205", "megatron_h100", "nemo_perf", "dgxc", "torchtitan",
                           "mosaic", "llama3_405b", "nanotron", "bloom_sweep"})
    tables.push_back(
        plan_table(load_published_table((folder / (std::string(name) + ".tsv")).string()), built_in_parameters()));
  bool tested = false, activations = false;
  for (const PlanErrors& errors : join_errors(tables)) {
    if (errors.of == "tested") {
      tested = true;
      EXPECT_GT(errors.rows, 110);
      EXPECT_LE(errors.median, 0.04);
      EXPECT_LE(errors.p90, 0.16);
    }
    if (errors.of == "memory") {
      EXPECT_LE(errors.median, 0.07);
    }
    if (errors.of == "activations") {
      activations = true;
      EXPECT_LE(errors.worst, 0.012);
    }
  }
  EXPECT_TRUE(tested && activations);
}

}  // namespace
}  // namespace tprimat
