#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "planner/memory.h"
#include "spec/model_catalogue.h"

namespace tprimat::planner {
namespace {

template <class T>
const T& pick(const std::vector<T>& from, std::mt19937& random) {
  return from[std::uniform_int_distribution<size_t>(0, from.size() - 1)(random)];
}

void draw_experts(Workload& w, std::mt19937& random) {
  Layout& l = w.layout;
  const int64_t count = w.shape.experts->count, ranks = l.tensor * l.context * l.data;
  for (const int64_t size : {2, 4, 8, 16})
    if (count % size == 0 && ranks % size == 0 && pick<int64_t>({0, 1}, random) == 1) l.expert = size;
  w.expert_load = pick<double>({0, 1, 1.3, 4}, random);
}

// Any training of a dense or sparse model by another program, also odd ones.
Workload draw(std::mt19937& random) {
  Workload w;
  w.shape = find_counted_model(pick<std::string>({"llama3_8b", "gpt_175b", "deepseek_v3", "deepseek_v2_lite",
                                                  "qwen3_30b_a3b", "mixtral_8x7b"},
                                                 random))
                ->spec;
  do w.family = &pick(families(), random);
  while (w.family->own_trainer);
  Layout& l = w.layout;
  if (w.family->tensor_parallel) l.tensor = pick<int64_t>({1, 2, 4, 8}, random);
  if (w.family->pipeline_parallel) l.pipeline = pick<int64_t>({1, 2, 3, 4, 8}, random);
  if (w.family->context_parallel) l.context = pick<int64_t>({1, 2, 4}, random);
  if (w.family->interleaves && l.pipeline > 1) l.chunks = pick<int64_t>({1, 2, 3}, random);
  l.data = pick<int64_t>({1, 2, 3, 8, 64}, random);
  l.micro_batch = pick<int64_t>({1, 2, 3}, random);
  l.recompute = pick<Recompute>({Recompute::none, Recompute::selective, Recompute::full}, random);
  l.sharding =
      w.family->fully_sharded ? Sharding::weights : pick<Sharding>({Sharding::none, Sharding::optimizer}, random);
  w.precision = pick<PlanPrecision>({PlanPrecision::bf16, PlanPrecision::fp8, PlanPrecision::fp4}, random);
  w.sequence_length = pick<int64_t>({512, 4096, 32768}, random);
  w.global_batch = l.data * l.micro_batch * pick<int64_t>({1, 3, 4, 12, 64}, random);
  w.gradient_bytes = pick<double>({0, 2}, random);
  w.trains_adapters = pick<int>({0, 0, 0, 1}, random) == 1;
  if (l.recompute == Recompute::full) w.recomputed_share = pick<double>({1, 0.3}, random);
  if (l.recompute == Recompute::selective && pick<int>({0, 1}, random) == 1)
    w.recomputed_modules = {RecomputedModule::norms, RecomputedModule::expert_activation};
  if (w.shape.experts) draw_experts(w, random);
  return w;
}

double bytes_of(const Workload& w) { return estimate_memory(w, built_in_parameters()).total(); }

// Rounding of sums in another order is no change.
void expect_no_less(double bytes, double than, int round) { EXPECT_GE(bytes, than * (1 - 1e-9)) << round; }

constexpr int k_rounds = 1500;

TEST(MemoryProperties, EveryPartIsFiniteAndNotNegative) {
  std::mt19937 random(1);
  for (int round = 0; round < k_rounds; ++round) {
    const Workload w = draw(random);
    for (const auto& [part, bytes] : estimate_memory(w, built_in_parameters()).parts())
      ASSERT_TRUE(std::isfinite(bytes) && bytes >= 0) << round << " " << part << " " << bytes;
  }
}

TEST(MemoryProperties, LongerSequencesLargerMicroBatchesAndFullerExpertsNeverNeedLess) {
  std::mt19937 random(2);
  for (int round = 0; round < k_rounds; ++round) {
    const Workload w = draw(random);
    const double before = bytes_of(w);
    Workload more = w;
    more.sequence_length *= 2;
    expect_no_less(bytes_of(more), before, round);
    more = w, more.layout.micro_batch *= 2;
    expect_no_less(bytes_of(more), before, round);
    // an interleaved schedule takes whole rounds of micro-batches, and fewer pass all its uneven chunks alike
    more = w, more.global_batch *= 2;
    if (w.layout.chunks == 1) expect_no_less(bytes_of(more), before, round);
    more = w, more.expert_load = std::max(1.0, w.expert_load) * 1.5;
    expect_no_less(bytes_of(more), before, round);
  }
}

TEST(MemoryProperties, MoreShardingNeverNeedsMoreForStates) {
  std::mt19937 random(3);
  for (int round = 0; round < k_rounds; ++round) {
    Workload w = draw(random);
    double before = INFINITY;
    for (const Sharding sharding : {Sharding::none, Sharding::optimizer, Sharding::gradients, Sharding::weights}) {
      w.layout.sharding = sharding;
      MemoryEstimate m;
      w.visit_stages([&](int64_t stage) {
        const MemoryEstimate each = estimate_stage_memory(w, built_in_parameters(), stage);
        if (each.states() > m.states()) m = each;
      });
      expect_no_less(before, m.states(), round);
      before = m.states();
    }
  }
}

TEST(MemoryProperties, TwiceTheExpertRanksHaveHalfOfTheExperts) {
  std::mt19937 random(4);
  for (int round = 0; round < k_rounds; ++round) {
    Workload w = draw(random);
    if (!w.shape.experts) continue;
    const double before = layer_rank_weights(w, LayerKind::experts).experts;
    w.layout.expert *= 2;
    EXPECT_DOUBLE_EQ(layer_rank_weights(w, LayerKind::experts).experts, before / 2) << round;
  }
}

TEST(MemoryProperties, WhatIsRepeatedIsNotKept) {
  std::mt19937 random(5);
  for (int round = 0; round < k_rounds; ++round) {
    Workload w = draw(random);
    w.recomputed_modules.clear();
    const LayerKind kind = w.shape.experts ? LayerKind::experts : LayerKind::dense;
    w.layout.recompute = Recompute::none;
    const double all = layer_activation_bytes(w, kind);
    w.layout.recompute = Recompute::selective, w.recomputed_modules = {RecomputedModule::norms};
    if (w.family->operator_recompute) w.repeats_core = true;
    expect_no_less(all, layer_activation_bytes(w, kind), round);
    w.layout.recompute = Recompute::full;
    for (const double share : {0.0, 0.5, 1.0}) {
      w.recomputed_share = share;
      expect_no_less(all, layer_activation_bytes(w, kind), round);
    }
  }
}

}  // namespace
}  // namespace tprimat::planner
