#include "planner/memory.h"

#include <gtest/gtest.h>

#include "planner_samples.h"

namespace tprimat::planner {
namespace {

// The GPT of arXiv 2205.05198, table 3: l layers of width h with a heads, s = 2048.
Workload paper_workload(int64_t layers, int64_t hidden, int64_t heads, int64_t micro) {
  Workload workload;
  ModelSpec& m = workload.shape;
  m.num_layers = layers, m.hidden_size = hidden, m.ffn_hidden_size = 4 * hidden;
  m.num_attention_heads = m.num_key_value_heads = heads, m.head_dim = hidden / heads;
  m.vocab_size = 51200, m.mlp = MlpKind::gelu, m.tied_embeddings = true;
  workload.sequence_length = 2048;
  workload.layout.tensor = 8, workload.layout.micro_batch = micro;
  workload.global_batch = 512;
  workload.family = find_family("megatron_2021");
  return workload;
}

std::vector<int64_t> layers_of_stages(const char* family, int64_t layers, int64_t stages) {
  Workload w = paper_workload(layers, 6144, 64, 1);
  w.family = find_family(family);
  w.layout.pipeline = stages;
  std::vector<int64_t> found;
  for (int64_t stage = 0; stage < stages; ++stage) found.push_back(w.stage_layers(stage));
  return found;
}

// As ds_utils.partition_balanced cuts so many equal layers.
TEST(StageLayers, DeepSpeedFillsOneStageAfterTheOther) {
  using Layers = std::vector<int64_t>;
  EXPECT_EQ(layers_of_stages("megatron_deepspeed", 78, 12), (Layers{7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 1}));
  EXPECT_EQ(layers_of_stages("megatron_deepspeed", 106, 6), (Layers{18, 18, 18, 18, 18, 16}));
  EXPECT_EQ(layers_of_stages("megatron_deepspeed", 9, 4), (Layers{3, 3, 3, 0}));
  EXPECT_EQ(layers_of_stages("megatron_deepspeed", 72, 6), Layers(6, 12));
  EXPECT_EQ(layers_of_stages("megatron_core", 78, 12), (Layers{6, 7, 6, 7, 6, 7, 6, 7, 6, 7, 6, 7}));
}

constexpr double k_sbh_22 = 2048.0 * 4 * 6144;

TEST(LayerActivations, EquationOne) {  // sbh (10 + 24/t + 5as/(ht)), tensor parallelism alone
  Workload w = paper_workload(48, 6144, 64, 4);
  w.layout.sequence_parallel = false;
  EXPECT_DOUBLE_EQ(layer_activation_bytes(w), k_sbh_22 * (10 + 24 / 8.0 + 5 * 64 * 2048 / (6144 * 8.0)));
}

TEST(LayerActivations, EquationFour) {  // sbh/t (34 + 5as/h), with sequence parallelism
  EXPECT_DOUBLE_EQ(layer_activation_bytes(paper_workload(48, 6144, 64, 4)),
                   k_sbh_22 / 8 * (34 + 5.0 * 64 * 2048 / 6144));
}

TEST(LayerActivations, TableTwosSelectiveAndFullRows) {
  Workload w = paper_workload(48, 6144, 64, 4);
  w.layout.recompute = Recompute::selective;
  EXPECT_DOUBLE_EQ(layer_activation_bytes(w), k_sbh_22 * 34 / 8);
  w.layout.recompute = Recompute::full;
  w.layout.sequence_parallel = false;
  EXPECT_DOUBLE_EQ(layer_activation_bytes(w), 2 * k_sbh_22);
}

TEST(LayerActivations, FusedAttentionKeepsNoScores) {
  const Workload short_one = sample_workload();
  Workload long_one = short_one;
  long_one.sequence_length *= 4;
  EXPECT_DOUBLE_EQ(layer_activation_bytes(long_one), 4 * layer_activation_bytes(short_one));
}

TEST(Memory, StatesAreSplitAsTheStagesOfZeroSay) {  // arXiv 1910.02054, figure 1: 16, 4 + 12/N, 2 + 14/N, 16/N bytes
  Workload w = paper_workload(48, 6144, 64, 1);
  w.layout.data = 8;
  Family family = *w.family;
  family.fp32_gradients = false;
  w.family = &family;
  const auto states = [&](Sharding sharding) {
    w.layout.sharding = sharding;
    const MemoryEstimate m = estimate_memory(w, built_in_parameters());
    return m.weights + m.gradients + m.master_weights + m.moments;
  };
  const double all = states(Sharding::none);
  EXPECT_NEAR(states(Sharding::optimizer) / all, (4 + 12 / 8.0) / 16, 1e-12);
  EXPECT_NEAR(states(Sharding::gradients) / all, (2 + 14 / 8.0) / 16, 1e-12);
  EXPECT_NEAR(states(Sharding::weights) / all, 1 / 8.0, 1e-12);
}

TEST(Memory, APipelinesFirstStageKeepsAsManyLayersAsTheModelHas) {
  Workload one = paper_workload(48, 6144, 64, 1), four = one;
  four.layout.pipeline = 4;
  // Without scores to keep, the first stage is the one that needs most.
  one.shape.vocab_size = four.shape.vocab_size = 128;
  const double all = estimate_memory(one, built_in_parameters()).activations;
  EXPECT_NEAR(estimate_memory(four, built_in_parameters()).activations, all, 1e-9 * all);
  four.layout.chunks = 3;  // interleaved: (1 + (p-1)/(pm)) more
  EXPECT_NEAR(estimate_memory(four, built_in_parameters()).activations, all * (1 + 3 / 12.0), 1e-9 * all);
}

TEST(Memory, APipelinesLastStageHasTheScores) {
  Workload w = sample_workload();
  w.layout.tensor = 1, w.layout.pipeline = 2, w.layout.data = 8, w.layout.micro_batch = 8;
  w.layout.recompute = Recompute::full;
  const MemoryEstimate m = estimate_memory(w, built_in_parameters());
  EXPECT_DOUBLE_EQ(m.logits, 8.0 * 8192 * 128256 * 10);
}

}  // namespace
}  // namespace tprimat::planner
