#include <gtest/gtest.h>

#include <random>

#include "planner/memory.h"
#include "planner/spec_workload.h"
#include "small_training.h"
#include "spec/train_spec.h"
#include "train/batch_reader.h"
#include "train/engine.h"
#include "train/optimizer.h"
#include "train/stage.h"

namespace tprimat::engine {
namespace {

// The parts of an engine, which check what they take of the plan.
template <class T>
void take_as(const TrainSpec& spec, const RankPlace& place, const TrainingPlan& plan) {
  ParameterTable parameters(plan.weights);
  const Stage<T> stage(spec, place, plan, parameters);
  const WeightStore<T> store(parameters, plan.store);
  const Optimizer<T> optimizer(spec, parameters, store, plan.optimizer);
  const BatchReader batches(spec, place, plan.batch);
}

void take(const TrainSpec& spec, const RankPlace& place, const TrainingPlan& plan) {
  switch (spec.precision) {
    case Precision::fp32:
    case Precision::tf32: return take_as<float>(spec, place, plan);
    case Precision::fp16: return take_as<f16>(spec, place, plan);
    default: return take_as<bf16>(spec, place, plan);
  }
}

planner::Workload workload_on(Platform platform, const TrainSpec& spec) {
  return planner::workload_of(spec, Framework::native, platform).workload;
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

std::string describe_drawn(const TrainSpec& spec) { return print_json_line(train_spec_to_json(spec)); }

void expect_one_plan(const TrainSpec& spec, Platform platform, const TrainingDevice& device) {
  const planner::Workload workload = workload_on(platform, spec);
  for (int stage = 0; stage < spec.parallel.pipeline; ++stage) {
    const planner::MemoryEstimate planned = planner::plan_native_stage(workload, stage);
    size_t most = 0;  // the heaviest rank of the stage: vocabularies do not always divide
    for (int tensor = 0; tensor < spec.parallel.tensor; ++tensor) {
      const RankPlace place{.tensor = tensor, .pipeline = stage};
      const TrainingPlan plan = plan_training(spec, place, device);
      take(spec, place, plan);
      most = std::max(most, plan.arena.total_bytes());
    }
    ASSERT_EQ(planned.total() - planned.slack, static_cast<double>(most)) << "stage " << stage << describe_drawn(spec);
  }
}

TEST(PlannedMemory, IsWhatTheEngineTakesInAnyLayout) {
  Draw draw{std::mt19937_64(11)};
  for (int i = 0; i < 400; ++i) ASSERT_NO_FATAL_FAILURE(expect_one_plan(draw_training(draw), Platform::cpu, {}));
}

TEST(PlannedMemory, IsWhatTheEngineTakesOnAGpu) {
  const TrainingDevice gpu{.is_host = false, .has_fp8_units = true};
  Draw draw{std::mt19937_64(13)};
  for (int i = 0; i < 400; ++i) {
    TrainSpec spec = draw_training(draw);
    if (draw.coin()) spec.precision = draw.of({Precision::fp8, Precision::tf32});
    ASSERT_NO_FATAL_FAILURE(expect_one_plan(spec, Platform::nvd, gpu));
  }
}

// One change of a plan, in a layout where an engine notices it.
struct Disagreement {
  const char* name;
  void (*lay_out)(TrainSpec& spec);
  void (*change)(TrainingPlan& plan);
};

BlockBuffers& last_block(TrainingPlan& plan) { return plan.chunks.back().buffers.blocks.back(); }

const Disagreement k_disagreements[] = {
    {"a weight of a matrix that TP splits", [](TrainSpec& spec) { spec.parallel.tensor = 2; },
     [](TrainingPlan& plan) { last_block(plan).mlp.down.weight.end -= 64; }},
    {"logits of a vocabulary that TP splits", [](TrainSpec& spec) { spec.parallel.tensor = 2; },
     [](TrainingPlan& plan) { plan.chunks.back().buffers.head->classifier.logits.count -= 1; }},
    {"rows that SP exchanges",
     [](TrainSpec& spec) { spec.parallel.tensor = 2, spec.parallel.sequence_parallel = true; },
     [](TrainingPlan& plan) { plan.shared.partial.count -= 1; }},
    {"micro batches under way in a pipeline", [](TrainSpec& spec) { spec.parallel.pipeline = 2; },
     [](TrainingPlan& plan) { plan.chunks.front().banks -= 1; }},
    {"micro batches under way in an interleaved pipeline",
     [](TrainSpec& spec) { spec.parallel.pipeline = 2, spec.parallel.virtual_pipeline = 2; },
     [](TrainingPlan& plan) { plan.chunks.back().banks -= 1; }},
    {"layers of a chunk", [](TrainSpec& spec) { spec.parallel.pipeline = 2, spec.parallel.virtual_pipeline = 2; },
     [](TrainingPlan& plan) { plan.chunks.front().buffers.blocks.pop_back(); }},
    {"keys and values that CP gathers", [](TrainSpec& spec) { spec.parallel.context = 2; },
     [](TrainingPlan& plan) { plan.shared.context.by_rank.count -= 1; }},
    {"what ZeRO-1 leaves to a rank", [](TrainSpec& spec) { spec.parallel.data = 2, spec.parallel.zero_stage = 1; },
     [](TrainingPlan& plan) { plan.store.owned -= 64; }},
    {"moments of ZeRO-3", [](TrainSpec& spec) { spec.parallel.data = 2, spec.parallel.zero_stage = 3; },
     [](TrainingPlan& plan) { plan.optimizer.second_moment.count *= 2; }},
    {"copies in fp8", [](TrainSpec& spec) { spec.precision = Precision::fp8; },
     [](TrainingPlan& plan) { last_block(plan).attention.qkv.copies->weight.count -= 1; }},
    {"compact states", [](TrainSpec& spec) { spec.optimizer.moments = MomentFormat::bf16; },
     [](TrainingPlan& plan) { plan.optimizer.short_second_moment.count -= 1; }},
    {"activations with recomputation", [](TrainSpec& spec) { spec.recompute = Recompute::selective; },
     [](TrainingPlan& plan) { last_block(plan).mlp.inner.count -= 1; }},
    {"tokens of a step", [](TrainSpec& spec) { spec.parallel.data = 2; },
     [](TrainingPlan& plan) { plan.batch.tokens.count -= 1; }}};

TEST(PlannedMemory, IsCheckedByTheEngine) {
  for (const Disagreement& each : k_disagreements) {
    TrainSpec spec = small_training(Precision::bf16);
    spec.model.num_layers = 4;
    each.lay_out(spec);
    TrainingPlan plan = plan_training(spec, {});
    take(spec, {}, plan);
    each.change(plan);
    EXPECT_DEATH(take(spec, {}, plan), "does not hold") << each.name;
  }
}

TEST(PlannedMemory, IsNamedAsTheEngineNamesIt) {
  Draw draw{std::mt19937_64(12)};
  for (int i = 0; i < 100; ++i) {
    TrainSpec spec = draw_training(draw);
    spec.model.vocab_size = 4096;
    auto engine = plan_training(spec, {}).arena.bytes_by_component();
    const planner::MemoryEstimate planned = planner::plan_native_stage(workload_on(Platform::cpu, spec), 0);
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
    const auto planned = planner::plan_native_memory(workload_on(Platform::cpu, spec)).total();
    EXPECT_EQ(planned, static_cast<double>(make_engine(spec)->memory().bytes));
  }
}

}  // namespace
}  // namespace tprimat::engine
