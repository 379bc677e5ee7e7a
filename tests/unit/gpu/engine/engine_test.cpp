#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/token_source.h"
#include "device/gpu/device.h"
#include "ops/gpu/blas_product.h"
#include "ops/gpu/gpu_ops.h"
#if defined(TPRIMAT_GPU_HOST)
#include "emulator/host_blas.h"
#include "emulator/host_profiler.h"
#endif
#include "train/engine.h"

namespace tprimat::engine {
namespace {

Backend one_gpu() {
  std::shared_ptr<Accelerator> device = gpu::make_device(0);
  return {device,
          device.get(),
          &gpu::gpu_ops<float>(),
          &gpu::gpu_ops<bf16>(),
          &gpu::gpu_ops<f16>(),
          nullptr,
          &gpu::product_settings()};
}

// As small as kernels allow that run thread by thread: a step takes about a second there.
TrainSpec tiny_training(Precision precision) {
  TrainSpec spec;
  ModelSpec& model = spec.model;
  model.name = model.full_name = "tiny";
  model.num_layers = 2;
  model.hidden_size = 48;
  model.ffn_hidden_size = 56;
  model.num_attention_heads = 4;
  model.num_key_value_heads = 2;
  model.head_dim = 16;
  model.vocab_size = 67;
  model.max_position_embeddings = 32;
  spec.optimizer.learning_rate = 3e-3;
  spec.precision = precision;
  spec.sequence_length = 20;
  spec.micro_batch_size = 1;
  spec.global_batch_size = 2;
  spec.steps = 3;
  spec.deterministic = true;
  return spec;
}

TrainSpec tiny_gpt(Precision precision) {
  TrainSpec spec = tiny_training(precision);
  ModelSpec& model = spec.model;
  model.mlp = MlpKind::gelu;
  model.norm = NormKind::layer;
  model.position = PositionKind::learned;
  model.tied_embeddings = model.linear_bias = true;
  model.num_key_value_heads = model.num_attention_heads;
  return spec;
}

TrainSpec tiny_qwen(Precision precision) {
  TrainSpec spec = tiny_training(precision);
  spec.model.qk_norm = spec.model.qkv_bias = true;
  spec.model.sliding_window = 7;
  return spec;
}

struct Curve {
  std::vector<double> losses, norms;
};
Curve train(const TrainSpec& spec, Engine& engine) {
  const auto tokens = open_token_source(spec.data, {spec.model.vocab_size, spec.sequence_length, spec.seed});
  Curve curve;
  for (int64_t step = 1; step <= spec.steps; ++step) {
    const UpdateReport report = engine.run_step(step, *tokens);
    curve.losses.push_back(report.loss);
    curve.norms.push_back(report.grad_norm);
  }
  return curve;
}

struct Case {
  const char* name;
  TrainSpec spec;
  double tolerance;  // relative, of losses and gradient norms
};
void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

std::vector<Case> cases() {
  std::vector<Case> all = {
      {"llama_fp32", tiny_training(Precision::fp32), 2e-5}, {"llama_bf16", tiny_training(Precision::bf16), 2e-2},
      {"llama_fp16", tiny_training(Precision::fp16), 4e-3}, {"llama_fp8", tiny_training(Precision::fp8), 5e-2},
      {"gpt_fp32", tiny_gpt(Precision::fp32), 2e-5},        {"gpt_bf16", tiny_gpt(Precision::bf16), 2e-2},
      {"qwen_fp32", tiny_qwen(Precision::fp32), 2e-5}};
  TrainSpec divisible = tiny_training(Precision::fp8);  // by 16: the device's own 8-bit products
  divisible.sequence_length = 32;
  divisible.model.ffn_hidden_size = 64;
  all.push_back({"fp8_units", divisible, 5e-2});
  TrainSpec compact = tiny_training(Precision::bf16);
  compact.optimizer.moments = MomentFormat::bf16;
  compact.optimizer.master_weights = false;
  all.push_back({"compact_states", compact, 2e-2});
  for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
    TrainSpec spec = tiny_training(Precision::fp32);
    spec.recompute = recompute;
    all.push_back({recompute == Recompute::full ? "full_recompute" : "selective_recompute", spec, 2e-5});
    spec = tiny_gpt(Precision::fp32);
    spec.recompute = recompute;
    all.push_back({recompute == Recompute::full ? "gpt_full_recompute" : "gpt_selective_recompute", spec, 2e-5});
  }
  return all;
}

class EngineOnGpu : public testing::TestWithParam<Case> {};

TEST_P(EngineOnGpu, TrainsAsOnTheProcessor) {
  const auto& [name, spec, tolerance] = GetParam();
  const auto on_gpu = make_engine(spec, make_self_communicator(), one_gpu());
  const auto on_cpu = make_engine(spec);
  const Curve ours = train(spec, *on_gpu), expected = train(spec, *on_cpu);
  for (size_t i = 0; i < ours.losses.size(); ++i) {
    EXPECT_NEAR(ours.losses[i] / expected.losses[i], 1, tolerance) << "loss of step " << i + 1;
    EXPECT_NEAR(ours.norms[i] / expected.norms[i], 1, 5 * tolerance) << "gradient norm of step " << i + 1;
  }
  EXPECT_LT(ours.losses.back(), ours.losses.front());
}

INSTANTIATE_TEST_SUITE_P(Tiny, EngineOnGpu, testing::ValuesIn(cases()),
                         [](const auto& each) { return std::string(each.param.name); });

std::map<std::string, std::vector<double>> weights_of(Engine& engine) {
  std::map<std::string, std::vector<double>> weights;
  engine.visit_state([&](const StatePiece& piece) {
    if (piece.kind == StateKind::weights)
      std::visit([&](const auto& v) { weights[piece.parameter.name].assign(v.begin(), v.end()); }, piece.values);
  });
  return weights;
}

TEST(EngineOnGpu, BeginsWithTheWeightsOfTheProcessor) {
  const TrainSpec spec = tiny_training(Precision::bf16);
  EXPECT_EQ(weights_of(*make_engine(spec, make_self_communicator(), one_gpu())), weights_of(*make_engine(spec)));
}

TEST(EngineOnGpu, GivesTheSameBitsTwice) {
  const TrainSpec spec = tiny_training(Precision::bf16);
  const auto run = [&] {
    const auto engine = make_engine(spec, make_self_communicator(), one_gpu());
    train(spec, *engine);
    return weights_of(*engine);
  };
  EXPECT_EQ(run(), run());
}

TEST(EngineOnGpu, EvaluatesAndGivesLogits) {
  const TrainSpec spec = tiny_training(Precision::fp32);
  const auto tokens = open_token_source(spec.data, {spec.model.vocab_size, spec.sequence_length, spec.seed});
  const auto on_gpu = make_engine(spec, make_self_communicator(), one_gpu());
  const auto on_cpu = make_engine(spec);
  EXPECT_NEAR(on_gpu->evaluate(0, 1, *tokens), on_cpu->evaluate(0, 1, *tokens), 1e-5);
  const std::vector<double> ours = on_gpu->logits(0, *tokens), expected = on_cpu->logits(0, *tokens);
  ASSERT_EQ(ours.size(), expected.size());
  for (size_t i = 0; i < ours.size(); ++i) ASSERT_NEAR(ours[i], expected[i], 1e-4) << i;
}

// Step 2 with weights that are NaN, which leaves NaN in the memory of all gradients.
void spoil_gradients(Engine& engine, const TokenSource& tokens) {
  const EngineProgress progress = engine.progress();
  std::vector<std::vector<float>> saved;
  engine.visit_state([&](const StatePiece& piece) {
    const auto values = std::get<std::span<float>>(piece.values);
    saved.emplace_back(values.begin(), values.end());
    if (piece.kind == StateKind::weights) std::fill(values.begin(), values.end(), std::nanf(""));
  });
  engine.adopt_state();
  EXPECT_TRUE(engine.run_step(2, tokens).skipped);
  auto next = saved.begin();
  engine.visit_state([&](const StatePiece& piece) {
    std::copy(next->begin(), next->end(), std::get<std::span<float>>(piece.values).begin());
    ++next;
  });
  engine.adopt_state();
  engine.restore_progress(progress);
}

// Whether the step that is spoiled is the one that is recorded, or a later one is.
TEST(EngineOnGpu, NothingOfASkippedStepIsInTheNext) {
  const std::pair<TrainSpec, int64_t> trainings[] = {
      {tiny_training(Precision::fp32), 1}, {tiny_gpt(Precision::bf16), 3}, {tiny_qwen(Precision::fp16), 3}};
  for (auto [spec, micro_batches] : trainings) {
    SCOPED_TRACE(micro_batches);
    spec.global_batch_size = spec.micro_batch_size * micro_batches;
    const auto tokens = open_token_source(spec.data, {spec.model.vocab_size, spec.sequence_length, spec.seed});
    const auto run = [&, &each = spec](bool spoiled) {
      const auto engine = make_engine(each, make_self_communicator(), one_gpu());
      engine->run_step(1, *tokens);
      if (spoiled) spoil_gradients(*engine, *tokens);
      for (int64_t step = 2; step <= 3; ++step) engine->run_step(step, *tokens);
      return weights_of(*engine);
    };
    EXPECT_EQ(run(true), run(false));
  }
}

TEST(EngineOnGpu, TakesUpWhatWasSaved) {
  const TrainSpec spec = tiny_training(Precision::bf16);
  const auto tokens = open_token_source(spec.data, {spec.model.vocab_size, spec.sequence_length, spec.seed});
  auto first = make_engine(spec, make_self_communicator(), one_gpu());
  first->run_step(1, *tokens);
  std::vector<std::vector<float>> saved;
  first->visit_state([&](const StatePiece& piece) {
    const auto values = std::get<std::span<float>>(piece.values);
    saved.emplace_back(values.begin(), values.end());
  });
  const EngineProgress progress = first->progress();
  const double expected = first->run_step(2, *tokens).loss;
  auto next = saved.begin();
  first.reset();
  const auto second = make_engine(spec, make_self_communicator(), one_gpu());
  second->visit_state([&](const StatePiece& piece) {
    std::copy(next->begin(), next->end(), std::get<std::span<float>>(piece.values).begin());
    ++next;
  });
  second->adopt_state();
  second->restore_progress(progress);
  EXPECT_EQ(second->run_step(2, *tokens).loss, expected);
}

#if defined(TPRIMAT_GPU_HOST)
// A library's handle is good for one GPU; here the second training has another one.
TEST(GpuEngine, HandlesOfLibrariesBelongToTheirGpu) {
  gpu::host::show_devices(2);
  const auto multiply_on = [](int index) {
    const auto device = gpu::make_device(index);
    auto* const memory = reinterpret_cast<float*>(device->allocate(48 * sizeof(float)));
    gpu::gpu_ops<float>().matmul(matrix<const float>(memory, 4, 4), matrix<const float>(memory + 16, 4, 4),
                                 matrix(memory + 32, 4, 4), false);
    EXPECT_EQ(gpu::host::blas_habits().handles, 1);
    device->release(reinterpret_cast<std::byte*>(memory), 48 * sizeof(float));
  };
  multiply_on(0);
  EXPECT_EQ(gpu::host::blas_habits().handles, 0);
  EXPECT_NO_THROW(multiply_on(1));
  gpu::host::show_devices(1);
}

// A clock changes neither what is computed nor that it is recorded, and counts every operation of every step.
TEST(GpuEngine, AClockTimesOperationsInsideRecordedSteps) {
  TrainSpec spec = tiny_training(Precision::bf16);
  spec.steps = 4;
  const Curve plain = train(spec, *make_engine(spec, make_self_communicator(), one_gpu()));
  OpClock clock;
  clock.keep_events();
  const Backend gpu = one_gpu();
  const auto engine = make_engine(spec, make_self_communicator(), gpu);
  engine->use_clock(&clock);
  const Curve timed = train(spec, *engine);
  EXPECT_EQ(timed.losses, plain.losses);
  for (const auto& [name, total] : clock.totals()) EXPECT_EQ(total.calls % spec.steps, 0) << name;
  EXPECT_EQ(clock.totals().at("mlp.gate_up forward").calls, spec.steps * 2 * 2);  // layers, micro-batches
  EXPECT_GT(clock.totals().at("mlp.gate_up forward").seconds, 0.0);
  for (const OpEvent& event : clock.events()) EXPECT_LT(event.begin, event.end) << event.name;
  EXPECT_EQ(gpu::host::open_ranges(), 0);
}

// A vendor's profiler sees each operation of its window as a range, so the window's steps are not recorded.
TEST(GpuEngine, RangesNameEveryOperationOfTheWindow) {
  TrainSpec spec = tiny_training(Precision::bf16);
  const Backend gpu = one_gpu();
  const auto engine = make_engine(spec, make_self_communicator(), gpu);
  OpClock clock;
  clock.name_ranges_only();
  gpu::host::seen_ranges().clear();
  engine->use_clock(&clock);
  gpu.accelerator->watch_with_profiler(true);
  train(spec, *engine);
  gpu.accelerator->watch_with_profiler(false);
  const auto& seen = gpu::host::seen_ranges();
  EXPECT_EQ(
      std::count_if(seen.begin(), seen.end(), [](const auto& range) { return range.name == "mlp.gate_up forward"; }),
      spec.steps * 2 * 2);
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](const auto& range) { return range.watched; }));
  EXPECT_EQ(gpu::host::open_ranges(), 0);
  EXPECT_TRUE(clock.totals().empty());
}

// Bytes of an update follow the formats in which weights and moments are kept.
TEST(GpuEngine, AnUpdateIsCountedByTheBytesOfItsFormats) {
  const auto bytes_per_value = [](bool masters, MomentFormat moments) {
    TrainSpec spec = tiny_training(Precision::bf16);
    spec.optimizer.master_weights = masters;
    spec.optimizer.moments = moments;
    spec.steps = 1;
    const Backend gpu = one_gpu();
    const auto engine = make_engine(spec, make_self_communicator(), gpu);
    OpClock clock;
    engine->use_clock(&clock);
    train(spec, *engine);
    return std::lround(clock.totals().at("AdamW").bytes / static_cast<double>(engine->parameter_count()));
  };
  EXPECT_EQ(bytes_per_value(true, MomentFormat::fp32), 4 + 16 + 10);  // gradient; moments; masters and weights
  EXPECT_EQ(bytes_per_value(false, MomentFormat::fp32), 4 + 16 + 4);
  EXPECT_EQ(bytes_per_value(true, MomentFormat::bf16), 4 + 8 + 10);
  EXPECT_EQ(bytes_per_value(false, MomentFormat::bf16), 4 + 8 + 4);
}

// Eight billion weights drawn on the host's processor and copied would take many seconds before the first step.
TEST(GpuEngine, WeightsAreDrawnOnTheGpu) {
  const Backend gpu = one_gpu();
  const int64_t before = gpu::host::grids_run();
  const auto engine = make_engine(tiny_training(Precision::bf16), make_self_communicator(), gpu);
  EXPECT_GT(gpu::host::grids_run(), before + 2 * 12);  // each weight: drawn, and rounded from its master
}
#endif

TEST(GpuEngine, OnlyATrainingInTf32RoundsItsInputs) {
  const Backend backend = one_gpu();
  for (const Precision precision : {Precision::tf32, Precision::fp32}) {
    const auto engine = make_engine(tiny_training(precision), make_self_communicator(), backend);
    EXPECT_EQ(gpu::product_settings().tf32, precision == Precision::tf32);
  }
}

TEST(GpuEngine, OnlyATrainingThatNeedNotRepeatMayDifferFromRunToRun) {
  const Backend backend = one_gpu();
  TrainSpec spec = tiny_training(Precision::bf16);
  for (const std::optional<bool> deterministic : {std::optional(true), std::optional(false), std::optional<bool>()}) {
    spec.deterministic = deterministic;
    const auto engine = make_engine(spec, make_self_communicator(), backend);
    EXPECT_EQ(gpu::product_settings().time_candidates, deterministic != true);
    EXPECT_EQ(gpu::product_settings().unordered_sums, deterministic != true);
  }
}

}  // namespace
}  // namespace tprimat::engine
