#include <gtest/gtest.h>

#include "planner/memory.h"
#include "spec/model_catalogue.h"

namespace tprimat::planner {
namespace {

constexpr double k_gib = 1024.0 * 1024 * 1024;

// Two dense layers, then four with 8 experts of width 16, of which each token passes 2, and a shared one of width 24.
ModelSpec small_sparse() {
  ModelSpec m;
  m.num_layers = 6, m.hidden_size = 64, m.ffn_hidden_size = 160;
  m.num_attention_heads = 4, m.num_key_value_heads = 2, m.head_dim = 16;
  m.vocab_size = 1000;
  Experts& experts = m.experts.emplace();
  experts.count = 8, experts.per_token = 2, experts.first_dense_layers = 2;
  experts.ffn_hidden_size = 16, experts.shared_ffn_hidden_size = 24;
  return m;
}

Workload sparse_workload(const ModelSpec& model) {
  Workload w;
  w.shape = model;
  w.sequence_length = 32, w.global_batch = 64;
  w.family = find_family("megatron_core");
  return w;
}

constexpr int64_t k_attention = 64 * 2 * (64 + 32), k_expert = 3 * 64 * 16;

TEST(SparseWeights, ExpertsAreSplitByEpAndEtpAndTheRestByTp) {
  Workload w = sparse_workload(small_sparse());
  w.layout.tensor = 2, w.layout.data = 8, w.layout.expert = 4, w.layout.expert_tensor = 2;
  const RankWeights sparse = layer_rank_weights(w, LayerKind::experts);
  EXPECT_DOUBLE_EQ(sparse.experts, 8.0 * k_expert / (4 * 2));
  EXPECT_DOUBLE_EQ(sparse.common, (k_attention + 3 * 64 * 24 + 2 * 64) / 2.0 + 8 * 64);  // a whole router
  const RankWeights dense = layer_rank_weights(w, LayerKind::dense);
  EXPECT_DOUBLE_EQ(dense.experts, 0);
  EXPECT_DOUBLE_EQ(dense.common, (k_attention + 3 * 64 * 160 + 2 * 64) / 2.0);
}

TEST(SparseWeights, LatentAttentionsDownProjectionsLieOnEveryRank) {
  Workload w = sparse_workload(small_sparse());
  w.shape.latent_attention = LatentAttention{24, 32, 8, 16};
  const double down = 64 * (24 + 32 + 8), up = 24 * 4 * 24 + 32 * 4 * 32 + 4 * 16 * 64;
  EXPECT_DOUBLE_EQ(layer_rank_weights(w, LayerKind::dense).common, down + up + 3 * 64 * 160 + 2 * 64);
  w.layout.tensor = 4;
  EXPECT_DOUBLE_EQ(layer_rank_weights(w, LayerKind::dense).common, down + (up + 3 * 64 * 160 + 2 * 64) / 4);
  w.shape.latent_attention->query_rank = 0;  // queries are projected directly
  EXPECT_DOUBLE_EQ(layer_rank_weights(w, LayerKind::dense).common,
                   64 * (32 + 8) + (64 * 4 * 24 + 32 * 4 * 32 + 4 * 16 * 64 + 3 * 64 * 160 + 2 * 64) / 4.0);
}

// ZeRO-1 splits the experts' optimizer states over TP x CP x DP / (EP x ETP) ranks, all others over DP x CP.
TEST(SparseStates, AreSharedByTheRanksThatHaveTheSameWeights) {
  Workload w = sparse_workload(small_sparse());
  w.layout.tensor = 2, w.layout.context = 2, w.layout.data = 4, w.layout.expert = 4;
  w.layout.sharding = Sharding::optimizer;
  const RankWeights weights = stage_weights(w, 0);
  const MemoryEstimate m = estimate_memory(w, built_in_parameters());
  EXPECT_DOUBLE_EQ(m.weights, 2 * weights.total());
  EXPECT_DOUBLE_EQ(m.gradients, 4 * weights.total());
  EXPECT_DOUBLE_EQ(m.master_weights, 4 * (weights.common / 8 + weights.experts / (2 * 2 * 4 / 4.0)));
  w.layout.sharding = Sharding::weights;
  EXPECT_DOUBLE_EQ(estimate_memory(w, built_in_parameters()).weights, 2 * (weights.common / 8 + weights.experts / 4));
}

TEST(SparseStages, HaveTheFirstLayersDenseAndThePredictionLast) {
  Workload w = sparse_workload(small_sparse());
  w.layout.pipeline = 3;
  w.shape.prediction_layers = 2;
  const StageLayers first = layers_of_stage(w, 0), second = layers_of_stage(w, 1), last = layers_of_stage(w, 2);
  EXPECT_TRUE(first.dense == 2 && first.experts == 0 && first.prediction == 0);
  EXPECT_TRUE(second.dense == 0 && second.experts == 2 && second.prediction == 0);
  EXPECT_TRUE(last.dense == 0 && last.experts == 2 && last.prediction == 2);
  w.layout.chunks = 2, w.layout.pipeline = 3;  // layers 0 and 3, 1 and 4, 2 and 5
  EXPECT_EQ(layers_of_stage(w, 0).experts, 1);
  EXPECT_EQ(layers_of_stage(w, 2).experts, 2);
  w.layout.chunks = 1;
  w.shape.experts->first_dense_layers = 0, w.shape.experts->layer_interval = 2;  // 1, 3 and 5
  for (int64_t stage = 0; stage < 3; ++stage) EXPECT_EQ(layers_of_stage(w, stage).experts, 1) << stage;
}

TEST(SparseStages, ALayerThatPredictsIsOneMoreWithAJoinAndTheTable) {
  Workload w = sparse_workload(small_sparse());
  const double without = stage_weights(w, 0).total(), layer = layer_rank_weights(w, LayerKind::experts).total();
  w.shape.prediction_layers = 2;
  EXPECT_DOUBLE_EQ(stage_weights(w, 0).total(), without + 2 * (layer + 2 * 64 * 64));
  w.shape.shared_prediction = true;
  EXPECT_DOUBLE_EQ(stage_weights(w, 0).total(), without + layer + 2 * 64 * 64);
  w.layout.pipeline = 2;
  const double last = stage_weights(w, 1).total();
  w.shape.prediction_layers = 0;
  EXPECT_DOUBLE_EQ(last, stage_weights(w, 1).total() + layer + 2 * 64 * 64 + 1000 * 64);
}

// Rows of 32 tokens.
TEST(SparseActivations, KeepWhatEachCopyOfATokenLeaves) {
  Workload w = sparse_workload(small_sparse());
  const double attention = 2 * (4 * 64) + 2 * (2 * 64 + 2 * 32) + 4 * 4;  // hidden; q, k, v and sum; softmax
  const double router = 9 * 8, shared = 2 * 3 * 24;
  const double copy = 2 * (64 + 3 * 16) + 4;
  EXPECT_DOUBLE_EQ(layer_activation_bytes(w, LayerKind::dense), 32 * (attention + 2 * 3 * 160));
  EXPECT_DOUBLE_EQ(layer_activation_bytes(w, LayerKind::experts), 32 * (attention + shared + router + 2 * copy));
  w.expert_load = 1.5;
  EXPECT_DOUBLE_EQ(layer_activation_bytes(w, LayerKind::experts),
                   32 * (attention + shared + router + 2 * copy));  // one rank has them all
  w.layout.data = 4, w.layout.expert = 4;
  EXPECT_DOUBLE_EQ(layer_activation_bytes(w, LayerKind::experts), 32 * (attention + shared + router + 3 * copy));
  w.layout.recompute = Recompute::full;
  EXPECT_DOUBLE_EQ(layer_activation_bytes(w, LayerKind::experts), 32 * 2 * 64);
}

TEST(SparseActivations, EtpRanksTakeEachOthersTokensAndSplitTheWidth) {
  Workload w = sparse_workload(small_sparse());
  const double alone = layer_activation_bytes(w, LayerKind::experts);
  w.layout.data = 2, w.layout.expert_tensor = 2;
  const double more = 2 * 2 * (2 * (64 + 3 * 16 / 2.0) + 4) - 2 * (2 * (64 + 3 * 16) + 4);
  EXPECT_DOUBLE_EQ(layer_activation_bytes(w, LayerKind::experts), alone + 32 * more);
}

TEST(LoadOfFullestRank, IsLimitedByCapacityAndByTheRanks) {
  Workload w = sparse_workload(small_sparse());
  w.layout.expert = 4;
  EXPECT_EQ(load_of_fullest_rank(w), 1);
  w.expert_load = 100;
  EXPECT_EQ(load_of_fullest_rank(w), 4);
  w.shape.experts->capacity_factor = 1.25;
  EXPECT_EQ(load_of_fullest_rank(w), 1.25);
  w.expert_load = 1.1;
  EXPECT_EQ(load_of_fullest_rank(w), 1.1);
  w.shape.experts->capacity_factor = 0.5;  // half of the tokens are dropped
  EXPECT_EQ(load_of_fullest_rank(w), 0.5);
}

TEST(SparseActivations, ScoresComeOnceMoreForEachLayerThatPredicts) {
  Workload w = sparse_workload(small_sparse());
  const double once = estimate_memory(w, built_in_parameters()).logits;
  w.shape.prediction_layers = 1;
  EXPECT_DOUBLE_EQ(estimate_memory(w, built_in_parameters()).logits, 2 * once);
}

ModelSpec public_model(const char* name) { return find_counted_model(name)->spec; }

// AMD-AGI/Primus at b3d0efd, ut_out/log.test_megatron_trainer-deepseek_v2_lite.txt: 8 MI300X, EP 8, after one step
// 41000 MiB are allocated, which are weights, gradients and optimizer states.
TEST(PublishedSparseMemory, StatesOfDeepSeekV2LiteUnderMegatron) {
  Workload w = sparse_workload(public_model("deepseek_v2_lite"));
  w.shape.vocab_size = 100096;  // as printed
  w.sequence_length = 4096, w.global_batch = 8;
  w.layout.data = 8, w.layout.expert = 8, w.layout.sharding = Sharding::optimizer;
  EXPECT_NEAR(estimate_memory(w, built_in_parameters()).states() / (41000.346 * 1024 * 1024), 1, 0.025);
}

// AMD-AGI/Primus at b3d0efd, ut_out/log.test_torchtitan_trainer-deepseek_v3_16b.txt: "2,254,983,168 total parameters".
TEST(PublishedSparseMemory, WeightsOfFourLayersOfDeepSeekUnderTorchtitan) {
  Workload w = sparse_workload(public_model("deepseek_v2_lite"));
  w.shape.num_layers = 4;
  w.layout.data = 8, w.layout.expert = 8;
  const RankWeights weights = stage_weights(w, 0);
  EXPECT_NEAR(weights.common + 8 * weights.experts, 2'254'983'168, 1e4);  // without the norms inside attention
}

// pytorch/torchtitan torchtitan/distributed/deepep/README.md at a5e9d31: what further GPUs save is the states' share.
TEST(PublishedSparseMemory, StatesOfQwen3UnderTorchtitan) {
  const auto states_on = [](int64_t gpus) {
    Workload w = sparse_workload(public_model("qwen3_30b_a3b"));
    w.family = find_family("fsdp2");
    w.sequence_length = 4096, w.global_batch = 8 * gpus;
    w.layout.data = gpus, w.layout.expert = 8, w.layout.sharding = Sharding::weights, w.layout.micro_batch = 8;
    return estimate_memory(w, built_in_parameters()).states();
  };
  const struct {
    int64_t gpus;
    double gib;
  } rows[] = {{16, 138.75}, {32, 124.58}, {64, 117.50}, {128, 114.78}};
  for (const auto& row : rows)
    EXPECT_NEAR((states_on(8) - states_on(row.gpus)) / ((167.93 - row.gib) * k_gib), 1, 0.03) << row.gpus;
}

// NVIDIA-NeMo/Megatron-Bridge skills/nemo-mbridge-perf-cpu-offloading/card.yaml at 067f987: with the whole optimizer on
// the host 15.2 GB less, which are the two moments.
TEST(PublishedSparseMemory, MomentsOfQwen3UnderMegatronBridge) {
  Workload w = sparse_workload(public_model("qwen3_30b_a3b"));
  w.sequence_length = 4096;
  w.layout.tensor = 2, w.layout.pipeline = 2, w.layout.data = 4, w.layout.expert = 4;
  w.layout.sharding = Sharding::optimizer;
  EXPECT_NEAR(estimate_memory(w, built_in_parameters()).moments / (47.2e9 - 32.0e9), 1, 0.01);
}

// NVIDIA-NeMo/Megatron-Bridge skills/nemo-mbridge-perf-expert-parallel-overlap/SKILL.md at 067f987: 62.166 GiB
// allocated. Its recipes sum gradients in 16 bits.
TEST(PublishedSparseMemory, AllOfQwen3UnderMegatronBridge) {
  Workload w = sparse_workload(public_model("qwen3_30b_a3b"));
  w.sequence_length = 4096, w.global_batch = 1024, w.gradient_bytes = 2;
  w.layout.data = 16, w.layout.expert = 16, w.layout.sharding = Sharding::optimizer;
  const MemoryReading allocated{MemoryFigure::allocated, MemoryStage::last};
  EXPECT_NEAR(predict_bytes(w, built_in_parameters(), allocated) / (62.166 * k_gib), 1, 0.03);
}

// pytorch/torchtitan torchtitan/distributed/deepep/README.md at a5e9d31, reserved: the last figure is of MBS 10.
TEST(PublishedSparseMemory, AllOfQwen3UnderTorchtitan) {
  const struct {
    int64_t gpus, micro;
    double gib;
  } rows[] = {{8, 8, 167.93}, {16, 8, 138.75}, {32, 8, 124.58}, {64, 8, 117.50}, {128, 8, 114.78}, {128, 10, 142.21}};
  for (const auto& row : rows) {
    Workload w = sparse_workload(public_model("qwen3_30b_a3b"));
    w.family = find_family("fsdp2");
    w.sequence_length = 4096, w.global_batch = row.micro * row.gpus;
    w.layout.data = row.gpus, w.layout.expert = 8, w.layout.sharding = Sharding::weights;
    w.layout.micro_batch = row.micro, w.layout.recompute = Recompute::selective;
    const double bytes = predict_bytes(w, built_in_parameters(), {MemoryFigure::reserved});
    EXPECT_NEAR(bytes / (row.gib * k_gib), 1, 0.07) << row.gpus << " " << row.micro;
  }
}

// AMD-AGI/Primus, 256 MI355X: 88 % of 288 GiB on the fullest rank. One of the two layers of each chunk is repeated; the
// layers are cut as 31 chunks of 2 less one.
TEST(PublishedSparseMemory, AllOfDeepSeekV3UnderPrimus) {
  Workload w = sparse_workload(public_model("deepseek_v3"));
  w.precision = PlanPrecision::fp8;
  w.sequence_length = 4096, w.global_batch = 4096;
  w.layout.pipeline = 16, w.layout.chunks = 2, w.layout.data = 16, w.layout.expert = 8, w.layout.micro_batch = 2;
  w.layout.sharding = Sharding::optimizer, w.layout.recompute = Recompute::full, w.recomputed_share = 32 / 61.0;
  w.layers_of_places.assign(32, 2);
  w.layers_of_places[30] = w.layers_of_places[31] = 1;
  w.layers_of_places[29] = 1;
  EXPECT_NEAR(estimate_memory(w, built_in_parameters()).total() / (0.88 * 288 * k_gib), 1, 0.15);
}

}  // namespace
}  // namespace tprimat::planner
