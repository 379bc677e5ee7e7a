#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "planner/native_memory.h"
#include "planner/spec_workload.h"
#include "small_training.h"
#include "spec/train_spec.h"
#include "train/batch_reader.h"
#include "train/engine.h"
#include "train/optimizer.h"
#include "train/stage.h"

namespace tprimat {
namespace {

// What the engine reserves on one rank.
template <class T>
std::map<std::string, size_t> reserve_as_engine(const TrainSpec& spec, const RankPlace& place,
                                                const StageDevice& device, size_t& total) {
  const int data_ranks = static_cast<int>(spec.parallel.data * spec.parallel.context);
  ParameterTable parameters(int64_t{64} * data_ranks);
  ArenaPlan plan;
  const Stage<T> stage(spec, place, parameters, plan, device);
  const WeightStore<T> store(parameters, spec.parallel.zero_stage, data_ranks, plan);
  const Optimizer<T> optimizer(spec, parameters, store, plan);
  const BatchReader batches(spec, place, plan);
  total = plan.total_bytes();
  return plan.bytes_by_component();
}

std::map<std::string, size_t> reserve(const TrainSpec& spec, const RankPlace& place, size_t& total,
                                      const StageDevice& device = {}) {
  switch (spec.precision) {
    case Precision::fp32:
    case Precision::tf32: return reserve_as_engine<float>(spec, place, device, total);
    case Precision::fp16: return reserve_as_engine<f16>(spec, place, device, total);
    default: return reserve_as_engine<bf16>(spec, place, device, total);
  }
}

Workload workload_on(Platform platform, const TrainSpec& spec) {
  return workload_of(spec, Framework::native, platform).workload;
}

struct Draw {
  std::mt19937_64 random;
  template <class T>
  T of(std::initializer_list<T> values) {
    return values.begin()[random() % values.size()];
  }
  bool coin() { return random() % 2 == 0; }
};

ModelSpec draw_model(Draw& draw) {
  ModelSpec model;
  model.num_attention_heads = draw.of<int64_t>({4, 8, 16});
  model.num_key_value_heads = draw.of<int64_t>({1, 2, 4});
  model.head_dim = draw.of<int64_t>({16, 24, 64});
  model.hidden_size = draw.of<int64_t>({96, 256, 1024});
  model.ffn_hidden_size = draw.of<int64_t>({128, 688, 2816});
  model.num_layers = draw.of<int64_t>({8, 16, 24});
  model.vocab_size = draw.of<int64_t>({509, 4096, 128256});
  model.max_position_embeddings = 2048;
  model.mlp = draw.of({MlpKind::swiglu, MlpKind::gelu});
  model.norm = draw.of({NormKind::rms, NormKind::layer});
  model.position = draw.of({PositionKind::rope, PositionKind::learned});
  model.tied_embeddings = draw.coin(), model.linear_bias = draw.coin();
  model.qkv_bias = draw.coin(), model.qk_norm = draw.coin();
  return model;
}

TrainSpec draw_training(Draw& draw) {
  TrainSpec spec;
  spec.model = draw_model(draw);
  ParallelSpec& layout = spec.parallel;
  layout.tensor = draw.of<int64_t>({1, 2, 4});
  layout.pipeline = draw.of<int64_t>({1, 2, 4});
  layout.virtual_pipeline = layout.pipeline > 1 ? draw.of<int64_t>({1, 2}) : 1;
  layout.ends_as_layers = layout.pipeline > 1 && draw.coin();
  if (layout.ends_as_layers) spec.model.num_layers -= 2;
  layout.context = draw.of<int64_t>({1, 2});
  layout.data = draw.of<int64_t>({1, 2, 3});
  layout.zero_stage = draw.of<int64_t>({0, 1, 2, 3});
  layout.sequence_parallel = layout.tensor > 1 && draw.coin();
  spec.precision = draw.of({Precision::fp32, Precision::bf16, Precision::fp16, Precision::fp8});
  spec.optimizer.moments = draw.of({MomentFormat::fp32, MomentFormat::bf16});
  spec.optimizer.master_weights = draw.coin();
  spec.recompute = draw.of({Recompute::none, Recompute::selective, Recompute::full});
  spec.sequence_length = draw.of<int64_t>({64, 192, 1024});
  spec.micro_batch_size = draw.of<int64_t>({1, 2, 3});
  spec.global_batch_size = spec.micro_batch_size * layout.data * layout.pipeline * draw.of<int64_t>({1, 2, 7});
  return spec;
}

std::string describe_drawn(const TrainSpec& spec) { return train_spec_to_json(spec).dump(); }

void expect_as_reserved(const TrainSpec& spec, Platform platform, const StageDevice& device) {
  const Workload workload = workload_on(platform, spec);
  for (int stage = 0; stage < spec.parallel.pipeline; ++stage) {
    const MemoryEstimate planned = plan_native_stage(workload, stage);
    size_t whole = 0, most = 0;  // the heaviest rank of the stage: vocabularies do not always divide
    for (int tensor = 0; tensor < spec.parallel.tensor; ++tensor) {
      reserve(spec, {tensor, 0, 0, stage}, whole, device);
      most = std::max(most, whole);
    }
    ASSERT_EQ(planned.total() - planned.slack, static_cast<double>(most)) << "stage " << stage << describe_drawn(spec);
  }
}

TEST(PlannedMemory, IsWhatTheEngineReservesInAnyLayout) {
  Draw draw{std::mt19937_64(11)};
  for (int i = 0; i < 400; ++i) ASSERT_NO_FATAL_FAILURE(expect_as_reserved(draw_training(draw), Platform::cpu, {}));
}

TEST(PlannedMemory, IsWhatTheEngineReservesOnAGpu) {
  const StageDevice gpu{.is_host = false, .has_fp8_units = true};
  Draw draw{std::mt19937_64(13)};
  for (int i = 0; i < 400; ++i) {
    TrainSpec spec = draw_training(draw);
    if (draw.coin()) spec.precision = draw.of({Precision::fp8, Precision::tf32});
    ASSERT_NO_FATAL_FAILURE(expect_as_reserved(spec, Platform::nvd, gpu));
  }
}

TEST(PlannedMemory, IsNamedAsTheEngineNamesIt) {
  Draw draw{std::mt19937_64(12)};
  for (int i = 0; i < 100; ++i) {
    TrainSpec spec = draw_training(draw);
    spec.model.vocab_size = 4096;
    size_t total = 0;
    auto engine = reserve(spec, {0, 0, 0, 0}, total);
    const MemoryEstimate planned = plan_native_stage(workload_on(Platform::cpu, spec), 0);
    const auto named = [&](const char* name) { return static_cast<double>(engine[name]); };
    EXPECT_EQ(planned.weights + planned.gradients + planned.gathered, named("weights") + named("gradients"));
    EXPECT_EQ(planned.master_weights, named("master weights"));
    EXPECT_EQ(planned.moments, named("optimizer"));
    EXPECT_EQ(planned.logits, named("logits"));
    EXPECT_EQ(planned.activations, named("activations")) << describe_drawn(spec);
    EXPECT_EQ(planned.buffers, named("workspace") + named("batch"));
  }
}

TEST(PlannedMemory, IsWhatAnEngineAllocates) {
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp8}) {
    const TrainSpec spec = small_training(precision);
    const auto planned = plan_native_memory(workload_on(Platform::cpu, spec)).total();
    EXPECT_EQ(planned, static_cast<double>(make_engine(spec)->memory().bytes));
  }
}

}  // namespace
}  // namespace tprimat
