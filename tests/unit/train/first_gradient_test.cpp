#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "data/token_source.h"
#include "small_training.h"
#include "train/engine.h"

namespace tprimat::engine {
namespace {

using StateValues = std::vector<std::vector<float>>;

StateValues values_of(Engine& engine, StateKind kind) {
  StateValues all;
  engine.visit_state([&](const StatePiece& piece) {
    const auto values = std::get<std::span<float>>(piece.values);
    if (piece.kind == kind) all.emplace_back(values.begin(), values.end());
  });
  return all;
}

void write_weights(Engine& engine, const StateValues& values) {
  auto next = values.begin();
  engine.visit_state([&](const StatePiece& piece) {
    if (piece.kind != StateKind::weights) return;
    std::copy(next->begin(), next->end(), std::get<std::span<float>>(piece.values).begin());
    ++next;
  });
  engine.adopt_state();
}

// A step with weights that are NaN: it changes nothing and leaves NaN in all gradients.
void spoil_all_gradients(Engine& engine, int64_t step, const TokenSource& tokens) {
  const EngineProgress progress = engine.progress();
  const StateValues weights = values_of(engine, StateKind::weights);
  StateValues spoiled = weights;
  for (auto& values : spoiled) std::fill(values.begin(), values.end(), std::numeric_limits<float>::quiet_NaN());
  write_weights(engine, spoiled);
  ASSERT_TRUE(engine.run_step(step, tokens).skipped);
  engine.visit_gradients([](const StatePiece& piece) {
    const auto values = std::get<std::span<float>>(piece.values);
    EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](float v) { return v != v; })) << piece.parameter.name;
  });
  write_weights(engine, weights);
  engine.restore_progress(progress);
}

TrainSpec gpt(TrainSpec spec) {
  spec.model.mlp = MlpKind::gelu;
  spec.model.norm = NormKind::layer;
  spec.model.position = PositionKind::learned;
  spec.model.linear_bias = true;
  spec.model.num_key_value_heads = spec.model.num_attention_heads;
  return spec;
}

TrainSpec qwen(TrainSpec spec) {
  spec.model.qkv_bias = spec.model.qk_norm = true;
  return spec;
}

std::vector<TrainSpec> trainings(Precision precision) {
  TrainSpec llama = small_training(precision);
  llama.model.vocab_size = 131;
  llama.sequence_length = 16;
  llama.micro_batch_size = 2;
  return {llama, gpt(llama), qwen(llama)};
}

void expect_nothing_left_over(const TrainSpec& spec) {
  const auto tokens = open_token_source(spec.data, {spec.model.vocab_size, spec.sequence_length, spec.seed});
  const auto spoiled = make_engine(spec), plain = make_engine(spec);
  for (int64_t step = 1; step <= 3; ++step) {
    if (step != 2) {
      ASSERT_NO_FATAL_FAILURE(spoil_all_gradients(*spoiled, step, *tokens));
    }
    if (step == 3) spoiled->evaluate(0, 1, *tokens);
    const UpdateReport found = spoiled->run_step(step, *tokens), expected = plain->run_step(step, *tokens);
    EXPECT_EQ(found.loss, expected.loss);
    EXPECT_EQ(found.grad_norm, expected.grad_norm);
  }
  EXPECT_EQ(values_of(*spoiled, StateKind::weights), values_of(*plain, StateKind::weights));
}

// Also where the products that make gradients find their squares.
void expect_norm_of_gradients(const TrainSpec& spec) {
  const auto tokens = open_token_source(spec.data, {spec.model.vocab_size, spec.sequence_length, spec.seed});
  const auto engine = make_engine(spec);
  for (int64_t step = 1; step <= 2; ++step) {
    const UpdateReport report = engine->run_step(step, *tokens);
    double squares = 0;
    engine->visit_gradients([&](const StatePiece& piece) {
      for (const float value : std::get<std::span<float>>(piece.values)) squares += static_cast<double>(value) * value;
    });
    const double norm = std::sqrt(squares) / report.loss_scale;
    EXPECT_NEAR(report.grad_norm, norm, 1e-6 * norm);
  }
}

class FirstGradient : public testing::TestWithParam<Precision> {};

TEST_P(FirstGradient, NothingOfASkippedStepIsInTheNext) {
  for (TrainSpec spec : trainings(GetParam()))
    for (const bool tied : {false, true})
      for (const int64_t micro_batches : {1, 3})
        for (const Recompute recompute : {Recompute::none, Recompute::full}) {
          SCOPED_TRACE(testing::Message() << "tied " << tied << ", micro batches " << micro_batches << ", recompute "
                                          << static_cast<int>(recompute));
          spec.model.tied_embeddings = tied;
          spec.global_batch_size = spec.micro_batch_size * micro_batches;
          spec.recompute = recompute;
          expect_nothing_left_over(spec);
        }
}

TEST_P(FirstGradient, NormIsThatOfAllGradients) {
  for (TrainSpec spec : trainings(GetParam()))
    for (const bool tied : {false, true})
      for (const int64_t micro_batches : {1, 3}) {
        SCOPED_TRACE(testing::Message() << "tied " << tied << ", micro batches " << micro_batches);
        spec.model.tied_embeddings = tied;
        spec.global_batch_size = spec.micro_batch_size * micro_batches;
        expect_norm_of_gradients(spec);
      }
}

std::string precision_of(const testing::TestParamInfo<Precision>& info) {
  switch (info.param) {
    case Precision::bf16: return "bf16";
    case Precision::fp16: return "fp16";
    case Precision::fp8: return "fp8";
    default: return "fp32";
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, FirstGradient,
                         testing::Values(Precision::fp32, Precision::bf16, Precision::fp16, Precision::fp8),
                         precision_of);

}  // namespace
}  // namespace tprimat::engine
