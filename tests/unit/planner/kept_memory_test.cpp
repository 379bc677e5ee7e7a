#include <gtest/gtest.h>

#include "planner/memory.h"
#include "planner_samples.h"

namespace tprimat::planner {
namespace {

// A gated MLP of width 160 beside 4 query and 2 key heads of 16 at width 64; 32 tokens.
Workload small_workload() {
  Workload w;
  ModelSpec& m = w.shape;
  m.num_layers = 8, m.hidden_size = 64, m.ffn_hidden_size = 160;
  m.num_attention_heads = 4, m.num_key_value_heads = 2, m.head_dim = 16, m.vocab_size = 1000;
  w.sequence_length = 32, w.global_batch = 64;
  w.family = find_family("megatron_core");
  return w;
}

Workload small_sparse() {
  Workload w = small_workload();
  Experts& experts = w.shape.experts.emplace();
  experts.count = 8, experts.per_token = 2, experts.ffn_hidden_size = 16, experts.shared_ffn_hidden_size = 24;
  return w;
}

constexpr double k_norms = 2 * 2 * 64, k_attention = 2 * (2 * 64 + 2 * 32), k_softmax = 4 * 4;

// Inputs of products in one byte; what else the backward pass needs stays in two.
TEST(KeptActivations, InputsOfProductsAreNarrowInFp8) {
  Workload w = small_workload();
  w.precision = PlanPrecision::fp8;
  const double attention = k_attention + 64 + k_softmax;  // and the sum as the next product takes it
  EXPECT_DOUBLE_EQ(layer_activation_bytes(w), 32 * (k_norms + 2 * 64 + attention + (2 * 2 + 1) * 160));
  w.stores_narrow = true;
  EXPECT_DOUBLE_EQ(layer_activation_bytes(w), 32 * (k_norms + 2 * 64 + attention + (2 + 1) * 160));
  w.precision = PlanPrecision::fp4, w.stores_narrow = false;
  const double half = 0.5625;
  EXPECT_DOUBLE_EQ(layer_activation_bytes(w),
                   32 * (k_norms + half * (2 * 64 + 64 + 160) + k_attention + k_softmax + 2 * 2 * 160));
}

TEST(KeptActivations, NormsOfQueriesAndKeysKeepTheirInputs) {
  Workload w = small_workload();
  const double without = layer_activation_bytes(w);
  w.shape.qk_norm = true;
  EXPECT_DOUBLE_EQ(layer_activation_bytes(w), without + 32 * 2 * (4 + 2) * 16);
}

TEST(KeptActivations, FrozenProductsKeepNoInputsAndAdaptersTheirs) {
  Workload w = small_workload();
  w.trains_adapters = true;
  EXPECT_DOUBLE_EQ(layer_activation_bytes(w),
                   32 * (k_norms + 2 * 2 * 64 + k_attention + k_softmax + 2 * 2 * 160 + 0 * 64));
}

TEST(KeptActivations, AShareOfTheLayersIsRepeated) {
  Workload w = small_workload();
  const double all = layer_activation_bytes(w);
  w.layout.recompute = Recompute::full;
  const double none = layer_activation_bytes(w);
  EXPECT_DOUBLE_EQ(none, 32 * 2 * 64);
  w.recomputed_share = 0.25;
  EXPECT_DOUBLE_EQ(layer_activation_bytes(w), 0.25 * none + 0.75 * all);
}

TEST(KeptActivations, NamedModulesAreNotKept) {
  Workload w = small_sparse();
  const double dense = layer_activation_bytes(w, LayerKind::dense), all = layer_activation_bytes(w, LayerKind::experts);
  w.layout.recompute = Recompute::selective;
  const auto without = [&](RecomputedModule module, LayerKind kind) {
    w.recomputed_modules = {module};
    return layer_activation_bytes(w, kind);
  };
  EXPECT_DOUBLE_EQ(without(RecomputedModule::norms, LayerKind::dense), dense - 32 * 2 * 2 * 64);
  EXPECT_DOUBLE_EQ(without(RecomputedModule::dense_mlp, LayerKind::dense), dense - 32 * 2 * 3 * 160);
  EXPECT_DOUBLE_EQ(without(RecomputedModule::dense_mlp, LayerKind::experts), all);
  EXPECT_DOUBLE_EQ(without(RecomputedModule::shared, LayerKind::experts), all - 32 * 2 * 3 * 24);
  EXPECT_DOUBLE_EQ(without(RecomputedModule::expert_activation, LayerKind::experts), all - 32 * 2 * 2 * 16);
  const double routed = 2 * (2 * (64 + 3 * 16) + 4) + 9 * 8;
  EXPECT_DOUBLE_EQ(without(RecomputedModule::experts, LayerKind::experts), all - 32 * (routed + 2 * 3 * 24));
}

// p = v = 2: the first stage begins 5 chunks before the first ends, two rounds of the first one.
TEST(KeptActivations, AnUnevenCutCountsEachChunkByItself) {
  Workload w = small_workload();
  w.layout.pipeline = w.layout.chunks = 2;
  w.layers_of_places = {1, 3, 3, 1};
  const double layer = layer_activation_bytes(w);
  EXPECT_DOUBLE_EQ(stage_activation_bytes(w, 0), (3 * 1 + 2 * 3) * layer);
  EXPECT_DOUBLE_EQ(stage_activation_bytes(w, 1), (2 * 3 + 1 * 1) * layer);
  w.global_batch = 1;  // no more than there are
  EXPECT_DOUBLE_EQ(stage_activation_bytes(w, 0), (1 + 3) * layer);
}

TEST(KeptStates, OfFrozenWeightsAreThoseOfTheAdapters) {
  Workload w = small_workload();
  w.trains_adapters = true, w.weight_bytes = 1;
  const MemoryEstimate m = estimate_memory(w, built_in_parameters());
  const double adapters = 2 * 2 * 16 * 64 * 8;
  EXPECT_EQ(m.gradients, 0);
  EXPECT_EQ(m.master_weights, 0);
  EXPECT_DOUBLE_EQ(m.weights, stage_weights(w, 0).total() + 2 * adapters);
  EXPECT_DOUBLE_EQ(m.moments, 16 * adapters);
}

// The optimizer takes its share of them in fp32 after the backward pass.
TEST(KeptStates, GradientsIn16BitsAreWidenedForTheStep) {
  Workload w = small_workload();
  const MemoryEstimate wide = estimate_memory(w, built_in_parameters());
  w.gradient_bytes = 2;
  const MemoryEstimate narrow = estimate_memory(w, built_in_parameters());
  EXPECT_DOUBLE_EQ(narrow.gradients, wide.gradients / 2);
  const double share = 4 * stage_weights(w, 0).total(), kept = wide.activations + wide.logits;
  EXPECT_DOUBLE_EQ(narrow.buffers - wide.buffers, std::max(0.0, share - kept));
}

TEST(KeptStates, AShareOfTheMomentsIsOnTheHost) {
  Workload w = small_workload();
  const double all = estimate_memory(w, built_in_parameters()).moments;
  w.offloaded_moments = 0.75;
  EXPECT_DOUBLE_EQ(estimate_memory(w, built_in_parameters()).moments, all / 4);
}

TEST(MemoryFigure, CountsMoreFromAllocatedToDevice) {
  const MemoryEstimate m = estimate_memory(sample_workload(), built_in_parameters());
  EXPECT_DOUBLE_EQ(m.bytes(MemoryFigure::reserved), m.bytes(MemoryFigure::allocated) + m.slack);
  EXPECT_DOUBLE_EQ(m.bytes(MemoryFigure::device), m.bytes(MemoryFigure::reserved) + m.context);
  EXPECT_EQ(m.total(), m.bytes(MemoryFigure::device));
  EXPECT_TRUE(m.slack > 0 && m.context > 0);
}

// mlcommons/training_results_v5.0 at 0fdc28f: LoRA on Llama 2 70B, torch.cuda.max_memory_allocated of the first rank.
TEST(PublishedMemory, OfAdapters) {
  const struct {
    int64_t context;
    double gib;
  } rows[] = {{1, 168.827}, {2, 134.083}, {4, 99.574}, {8, 82.323}};
  for (const auto& row : rows) {
    Workload w;
    w.shape = find_counted_model("llama2_70b")->spec;
    w.family = find_family("megatron_core");
    w.precision = PlanPrecision::fp8;
    w.sequence_length = 8192, w.global_batch = w.layout.data = 8, w.layout.context = row.context;
    w.layout.sharding = Sharding::optimizer;
    w.trains_adapters = true, w.weight_bytes = 1, w.stores_narrow = row.context == 1;
    const double bytes = predict_bytes(w, built_in_parameters(), {MemoryFigure::allocated, MemoryStage::first});
    EXPECT_NEAR(bytes / (row.gib * 1073741824), 1, 0.03) << row.context;
  }
}

// The same, Llama 3.1 405B: TP8 on 2048 H100, TP4 on 1024 GB200, whose products need no transposed copy of FP8 weights.
TEST(PublishedMemory, OfFp8PreTraining) {
  const struct {
    int64_t tensor, weight_bytes;
    double gib;
  } rows[] = {{8, 2, 52.484}, {4, 1, 92.100}};
  for (const auto& row : rows) {
    Workload w;
    w.shape = find_counted_model("llama3.1_405b")->spec;
    w.family = find_family("megatron_core");
    w.precision = PlanPrecision::fp8;
    w.sequence_length = 8192, w.global_batch = 1152;
    w.layout.tensor = row.tensor, w.layout.pipeline = w.layout.chunks = 8, w.layout.context = 2, w.layout.data = 16;
    w.layout.ends_as_layers = true, w.layout.sharding = Sharding::optimizer;
    w.weight_bytes = static_cast<double>(row.weight_bytes), w.gradient_bytes = 2;
    const double bytes = predict_bytes(w, built_in_parameters(), {MemoryFigure::allocated, MemoryStage::first});
    EXPECT_NEAR(bytes / (row.gib * 1073741824), 1, 0.05) << row.tensor;
  }
}

}  // namespace
}  // namespace tprimat::planner
