#include "memory/training_plan.h"

#include <gtest/gtest.h>

#include <new>

namespace tprimat {
namespace {

TrainSpec llama_training() {
  TrainSpec spec;
  ModelSpec& model = spec.model;
  model.num_layers = 8, model.hidden_size = 256, model.ffn_hidden_size = 688;
  model.num_attention_heads = 8, model.num_key_value_heads = 4, model.head_dim = 32;
  model.vocab_size = 4096, model.max_position_embeddings = 1024;
  spec.sequence_length = 128, spec.micro_batch_size = 2, spec.global_batch_size = 32;
  return spec;
}

struct Expectation {
  const char* name;
  void (*lay_out)(TrainSpec& spec);
  size_t bytes;
};

// The figures were counted apart from the plan, buffer by buffer.
TEST(TrainingPlanTest, CountsEveryLayout) {
  const Expectation expectations[] = {
      {"one rank", [](TrainSpec&) {}, 164863616},
      {"TP 2", [](TrainSpec& s) { s.parallel.tensor = 2; }, 85140096},
      {"TP 2, SP", [](TrainSpec& s) { s.parallel.tensor = 2, s.parallel.sequence_parallel = true; }, 82772096},
      {"PP 2", [](TrainSpec& s) { s.parallel.pipeline = 2; }, 89273472},
      {"PP 2, VP 2", [](TrainSpec& s) { s.parallel.pipeline = 2, s.parallel.virtual_pipeline = 2; }, 97735808},
      {"CP 2", [](TrainSpec& s) { s.parallel.context = 2; }, 154003584},
      {"DP 4", [](TrainSpec& s) { s.parallel.data = 4; }, 164839040},
      {"DP 4, ZeRO-1", [](TrainSpec& s) { s.parallel.data = 4, s.parallel.zero_stage = 1; }, 93726080},
      {"DP 4, ZeRO-2", [](TrainSpec& s) { s.parallel.data = 4, s.parallel.zero_stage = 2; }, 80510080},
      {"DP 4, ZeRO-3", [](TrainSpec& s) { s.parallel.data = 4, s.parallel.zero_stage = 3; }, 74950912},
      {"fp32", [](TrainSpec& s) { s.precision = Precision::fp32; }, 167353472},
      {"fp8", [](TrainSpec& s) { s.precision = Precision::fp8; }, 168287872},
      {"moments in bf16", [](TrainSpec& s) { s.optimizer.moments = MomentFormat::bf16; }, 133257856},
      {"no masters", [](TrainSpec& s) { s.optimizer.master_weights = false; }, 133257856},
      {"selective recomputation", [](TrainSpec& s) { s.recompute = Recompute::selective; }, 160562816},
      {"full recomputation", [](TrainSpec& s) { s.recompute = Recompute::full; }, 151889536}};
  for (const Expectation& each : expectations) {
    TrainSpec spec = llama_training();
    each.lay_out(spec);
    EXPECT_EQ(plan_training(spec, {}).arena.total_bytes(), each.bytes) << each.name;
  }
}

// Rows a multiple of 2 KB apart share a few sets of a processor's caches.
TEST(TrainingPlanTest, RowsOfLogitsSpreadOverTheCachesOfAProcessor) {
  TrainSpec spec = llama_training();
  const auto stride = [&](int64_t vocabulary, bool is_host) {
    spec.model.vocab_size = vocabulary;
    return plan_training(spec, {}, {.is_host = is_host}).chunks.front().buffers.head->classifier.stride;
  };
  EXPECT_EQ(stride(8192, true), 8192 + 16);
  EXPECT_EQ(stride(8192, false), 8192);
  EXPECT_EQ(stride(50257, true), 50304);
  EXPECT_EQ(stride(50257, false), 50304);
}

TEST(TrainingPlanTest, Fp8UnitsTakeBytes) {
  TrainSpec spec = llama_training();
  spec.precision = Precision::fp8;
  const TrainingPlan copied = plan_training(spec, {}, {.is_host = false});
  const TrainingPlan counted = plan_training(spec, {}, {.is_host = false, .has_fp8_units = true});
  const LinearBuffers& copies = copied.chunks.front().buffers.blocks.front().mlp.up;
  const LinearBuffers& units = counted.chunks.front().buffers.blocks.front().mlp.up;
  ASSERT_TRUE(copies.copies && units.units);
  EXPECT_EQ(copies.copies->weight.count, 2 * 688 * 256);
  EXPECT_EQ(units.units->weight.transposed.count, 2 * 688 * 256);
  EXPECT_EQ(units.units->weight.scale.place, Place::bank);  // the backward pass uses it too
  EXPECT_EQ(units.units->gradient.scale.place, Place::arena);
}

TEST(TrainingPlanTest, SharesOfDataParallelRanksAddUp) {
  TrainSpec spec = llama_training();
  spec.parallel.data = 3, spec.parallel.zero_stage = 3, spec.global_batch_size = 30;
  const TrainingPlan plan = plan_training(spec, {});
  EXPECT_EQ(3 * plan.store.weights.count, plan.weights.size());
  EXPECT_EQ(plan.store.gathered.count, 3 * plan.weights.largest_unit());
  EXPECT_EQ(plan.weights.count(), count_parameters(spec.model).total());
  EXPECT_EQ(plan.optimizer.master.count, plan.store.owned);
}

TEST(TrainingPlanTest, RefusesFiguresThatDoNotCount) {
  TrainSpec spec = llama_training();
  spec.micro_batch_size = spec.sequence_length = spec.global_batch_size = int64_t{1} << 30;
  EXPECT_THROW(plan_training(spec, {}), std::bad_alloc);
}

}  // namespace
}  // namespace tprimat
