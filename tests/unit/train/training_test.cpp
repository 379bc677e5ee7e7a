#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <span>

#include "base/error.h"
#include "data/token_source.h"
#include "small_training.h"
#include "train/log_line.h"
#include "train/loop.h"
#include "train/loss_watch.h"

namespace tprimat::engine {
namespace {

std::vector<double> losses_of(const TrainSpec& spec) {
  const auto engine = make_engine(spec);
  std::vector<double> losses;
  run_training(spec, *engine, [&](const StepRecord& record) { losses.push_back(record.loss.value()); });
  return losses;
}

TEST(TrainingTest, LossFallsWellBelowTheUniformGuess) {
  const auto losses = losses_of(small_training(Precision::fp32));
  ASSERT_EQ(losses.size(), 40u);
  EXPECT_NEAR(losses.front(), std::log(512.0), 0.2);
  EXPECT_LT(losses.back(), losses.front() - 1.0);
}

TEST(TrainingTest, SameSeedGivesTheSameLosses) {
  TrainSpec spec = small_training(Precision::bf16);
  spec.steps = 8;
  const auto first = losses_of(spec);
  EXPECT_EQ(losses_of(spec), first);
  spec.seed = 43;
  EXPECT_NE(losses_of(spec), first);
}

TEST(TrainingTest, Bf16TracksFp32WithinTwoPercent) {
  const auto precise = losses_of(small_training(Precision::fp32));
  const auto rounded = losses_of(small_training(Precision::bf16));
  for (size_t i = 0; i < precise.size(); ++i) EXPECT_NEAR(rounded[i] / precise[i], 1.0, 0.02) << "step " << i + 1;
}

// The gradient of a step must not depend on how its sequences are cut into micro batches.
TEST(TrainingTest, GradientAccumulationIsTheLargerBatch) {
  TrainSpec spec = small_training(Precision::fp32);
  spec.steps = 3;
  spec.optimizer.warmup_steps = 1;
  const auto accumulated = losses_of(spec);
  spec.micro_batch_size = spec.global_batch_size;
  const auto whole = losses_of(spec);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(accumulated[i], whole[i], 1e-5 * whole[i]);
}

TEST(TrainingTest, RecordsWhatWasDone) {
  TrainSpec spec = small_training(Precision::fp32);
  spec.steps = 5;
  const auto engine = make_engine(spec);
  std::vector<StepRecord> records;
  run_training(spec, *engine, [&](const StepRecord& record) { records.push_back(record); });
  ASSERT_EQ(records.size(), 5u);
  EXPECT_EQ(records[0].step, 1);
  EXPECT_DOUBLE_EQ(records[0].learning_rate.value(), learning_rate_at(spec.optimizer, 1, 5));
  EXPECT_EQ(records[4].tokens, 16 * 64);
  EXPECT_GT(records[4].grad_norm.value(), 0.0);
  EXPECT_GT(records[4].memory_allocated_gb.value(), 0.0);
  EXPECT_EQ(engine->parameter_count(), count_parameters(spec.model).total());
  const std::string line = render_log_line(records[4], spec);
  EXPECT_NE(line.find("iteration        5/       5"), std::string::npos) << line;
}

TEST(TrainingTest, WeightsCanBeReadAndMoveWithTraining) {
  TrainSpec spec = small_training(Precision::bf16);
  spec.steps = 2;
  spec.optimizer.warmup_steps = 1;
  const auto engine = make_engine(spec), reference = make_reference_engine(spec);
  const auto weights_of = [](Engine& each) {
    std::map<std::string, std::vector<double>> weights;
    each.visit_state([&](const StatePiece& piece) {
      if (piece.kind == StateKind::weights)
        std::visit([&](const auto& v) { weights[piece.parameter.name].assign(v.begin(), v.end()); }, piece.values);
    });
    return weights;
  };
  const auto before = weights_of(*engine);
  int64_t count = 0;
  for (const auto& [name, values] : before) count += static_cast<int64_t>(values.size());
  EXPECT_EQ(count, engine->parameter_count());
  // The reference starts from the same draws, in double.
  const auto exact = weights_of(*reference);
  for (const auto& [name, values] : before)
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], static_cast<double>(static_cast<float>(exact.at(name)[i])));
  run_training(spec, *engine, [](const StepRecord&) {});
  for (const auto& [name, values] : weights_of(*engine)) EXPECT_NE(values, before.at(name)) << name;
}

TEST(TrainingTest, DivergenceEndsWithTheStepNamed) {
  TrainSpec spec = small_training(Precision::fp32);
  spec.optimizer.learning_rate = 1e30;
  spec.optimizer.clip_grad_norm = 0;
  spec.optimizer.warmup_steps = 0;
  const auto engine = make_engine(spec);
  int64_t recorded = 0;
  try {
    run_training(spec, *engine, [&](const StepRecord& record) { recorded = record.step; });
    FAIL() << "a learning rate of 1e30 should not survive";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::work_failed);
    EXPECT_NE(std::string(error.what()).find("step " + std::to_string(recorded)), std::string::npos) << error.what();
  }
}

TEST(TrainingTest, RefusesWhatItCannotTrain) {
  TrainSpec spec = small_training(Precision::tf32);
  spec.model.experts = Experts{.count = 4, .per_token = 2, .ffn_hidden_size = 64};
  try {
    make_engine(spec);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.problems().size(), 2u) << error.what();
  }
}

// Half of the bytes of the moments, and no copy of the weights: what is learnt is nearly the same.
TEST(TrainingTest, CompactStatesLearnNearlyAsFullOnes) {
  const auto last_loss = [](MomentFormat moments, bool masters, size_t& bytes) {
    TrainSpec spec = small_training(Precision::bf16);
    spec.optimizer.moments = moments;
    spec.optimizer.master_weights = masters;
    const auto engine = make_engine(spec);
    const auto components = engine->memory().by_component;
    bytes = components.at("optimizer") + (masters ? components.at("master weights") : 0);
    double loss = 0;
    run_training(spec, *engine, [&](const StepRecord& record) { loss = record.loss.value(); });
    return loss;
  };
  size_t full_bytes = 0, bytes = 0;
  const double full = last_loss(MomentFormat::fp32, true, full_bytes);
  EXPECT_NEAR(last_loss(MomentFormat::bf16, true, bytes), full, 0.03 * full);
  EXPECT_EQ(bytes, full_bytes / 12 * 8);
  EXPECT_NEAR(last_loss(MomentFormat::fp32, false, bytes), full, 0.03 * full);
  EXPECT_EQ(bytes, full_bytes / 12 * 8);
  EXPECT_NEAR(last_loss(MomentFormat::bf16, false, bytes), full, 0.03 * full);
  EXPECT_EQ(bytes, full_bytes / 12 * 4);
}

TEST(TrainingTest, CompactStatesAreTakenUpAsTheyWere) {
  TrainSpec spec = small_training(Precision::bf16);
  spec.optimizer.moments = MomentFormat::bf16;
  spec.optimizer.master_weights = false;
  const auto tokens = open_token_source(spec.data, {spec.model.vocab_size, spec.sequence_length, spec.seed});
  const auto first = make_engine(spec), second = make_engine(spec);
  for (int64_t step = 1; step <= 3; ++step) first->run_step(step, *tokens);
  std::vector<std::vector<float>> saved;
  first->visit_state([&](const StatePiece& piece) {
    const auto values = std::get<std::span<float>>(piece.values);
    saved.emplace_back(values.begin(), values.end());
  });
  auto next = saved.begin();
  second->visit_state([&](const StatePiece& piece) {
    std::copy(next->begin(), next->end(), std::get<std::span<float>>(piece.values).begin());
    ++next;
  });
  second->adopt_state();
  second->restore_progress(first->progress());
  for (int64_t step = 4; step <= 6; ++step)
    EXPECT_EQ(first->run_step(step, *tokens).loss, second->run_step(step, *tokens).loss) << step;
}

// Rounding to 8 bits shows in the first loss already, and training goes on all the same.
TEST(TrainingTest, EmulatedFp8LearnsNearlyAsBf16Does) {
  const auto curve = [](Precision precision) {
    TrainSpec spec = small_training(precision);
    spec.steps = 40;
    std::vector<double> losses;
    const auto engine = make_engine(spec);
    run_training(spec, *engine, [&](const StepRecord& record) { losses.push_back(record.loss.value()); });
    return losses;
  };
  const std::vector<double> rounded = curve(Precision::fp8), plain = curve(Precision::bf16);
  EXPECT_NE(rounded.front(), plain.front());
  EXPECT_NEAR(rounded.front(), plain.front(), 0.02 * plain.front());
  EXPECT_LT(rounded.back(), 0.9 * rounded.front());
  EXPECT_NEAR(rounded.back(), plain.back(), 0.1 * plain.back());
}

TEST(TrainingTest, ALayoutNeedsItsRanks) {
  TrainSpec spec = small_training(Precision::fp32);
  spec.parallel.tensor = 2;
  EXPECT_THROW(make_engine(spec), Error);
}

TEST(TrainingTest, HalfPrecisionLearnsAfterItsOverflows) {
  TrainSpec spec = small_training(Precision::fp16);
  spec.loss_scale.initial = 0x1p40;  // far too high: the first steps must overflow, and the scale come down
  spec.steps = 60;
  const auto engine = make_engine(spec);
  std::vector<StepRecord> records;
  std::vector<std::string> notes;
  run_training(spec, *engine, 1,
               {[&](const StepRecord& record) { records.push_back(record); },
                [&](const std::string& note) { notes.push_back(note); },
                {}});
  EXPECT_TRUE(records.front().skipped.value_or(false));
  EXPECT_FALSE(notes.empty());
  EXPECT_FALSE(records.back().skipped.has_value());
  EXPECT_LT(records.back().loss_scale.value(), 0x1p40);
  EXPECT_LT(records.back().loss.value(), records.front().loss.value() - 0.5);
}

TEST(TrainingTest, EvaluationChangesNothingAndFollowsTheLoss) {
  TrainSpec spec = small_training(Precision::fp32);
  const auto plain = losses_of(spec);
  spec.evaluation = {10, 2};
  const auto engine = make_engine(spec);
  std::vector<double> losses, validation;
  run_training(spec, *engine, [&](const StepRecord& record) {
    losses.push_back(record.loss.value());
    if (record.validation_loss) validation.push_back(*record.validation_loss);
  });
  EXPECT_EQ(losses, plain);
  ASSERT_EQ(validation.size(), 4u);
  EXPECT_NEAR(validation.back(), losses.back(), 0.3);
}

TEST(TrainingTest, RecomputationGivesTheSameBits) {
  TrainSpec spec = small_training(Precision::bf16);
  spec.steps = 4;
  spec.optimizer.warmup_steps = 1;
  const auto plain = losses_of(spec);
  for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
    spec.recompute = recompute;
    EXPECT_EQ(losses_of(spec), plain);
  }
}

TEST(AnomalyWatchTest, ASpikeIsFoundAndDoesNotMoveTheMean) {
  AnomalyWatch watch({OnAnomaly::stop, OnAnomaly::record, 1.5});
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(watch.is_spike(4.0 - 0.05 * i));
  const double mean = watch.mean();
  EXPECT_TRUE(watch.is_spike(9.0));
  EXPECT_EQ(watch.mean(), mean);
  EXPECT_FALSE(watch.is_spike(3.1));
}

}  // namespace
}  // namespace tprimat::engine
