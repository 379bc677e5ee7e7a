// What NeMo and Megatron-Bridge print, line by line.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "unit/extract/line_feed.h"

namespace tprimat::logs {

Dialect nemo1_dialect(), nemo2_dialect(), megatron_bridge_dialect();

namespace {

constexpr std::string_view k_nemo2_line =
    "Training epoch 0, iteration 5/19 | lr: 8.996e-07 | global_batch_size: 512 | global_step: 5 | "
    "reduced_train_loss: 11.03 | train_step_timing in s: 7.59 | consumed_samples: 3072";

TEST(Nemo2, FieldsOfAStep) {
  Feed feed(nemo2_dialect());
  const ExtractedLog& log = feed.line(k_nemo2_line).finish();
  ASSERT_EQ(log.steps.size(), 1u);
  const ExtractedStep& step = log.steps[0];
  EXPECT_EQ(step.step, 5);
  EXPECT_DOUBLE_EQ(*step.time_seconds, 7.59);
  EXPECT_NEAR(*step.time_low, 7.5895, 1e-12);  // four digits: "7.59" is 7.590
  EXPECT_NEAR(*step.time_high, 7.5905, 1e-12);
  EXPECT_EQ(step.time_source, TimeSource::printed);
  EXPECT_DOUBLE_EQ(*step.loss, 11.03);
  EXPECT_DOUBLE_EQ(*step.learning_rate, 8.996e-07);
  EXPECT_DOUBLE_EQ(*step.samples_seen, 3072);
  EXPECT_EQ(log.facts.global_batch_size, 512);
  EXPECT_GE(feed.confidence(), 0.9);
}

TEST(Nemo2, OrderOfFieldsIsFreeAndConsumedSamplesMayLack) {
  Feed feed(nemo2_dialect());
  const ExtractedLog& log =
      feed.line("Training epoch 0, iteration 0/19 | global_step: 0 | train_step_timing in s: 10.5 | lr: 1e-07")
          .finish();
  ASSERT_EQ(log.steps.size(), 1u);
  EXPECT_FALSE(log.steps[0].samples_seen);
  EXPECT_FALSE(log.steps[0].loss);
  EXPECT_DOUBLE_EQ(*log.steps[0].time_seconds, 10.5);
}

TEST(Nemo2, LogIntervalMakesMeansAndTheirSampleCountIsNoCount) {
  Feed feed(nemo2_dialect());
  for (const char* text :
       {"Training epoch 0, iteration 9/29 | global_step: 9 | reduced_train_loss: 9.8 | consumed_samples: 172.8",
        "Training epoch 0, iteration 19/29 | global_step: 19 | reduced_train_loss: 8.0 | consumed_samples: 496"})
    feed.line(text);
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 2u);
  for (const ExtractedStep& step : log.steps) {
    EXPECT_EQ(step.mean_of, 10);
    EXPECT_FALSE(step.samples_seen);
  }
  EXPECT_TRUE(has_note(log, "log interval"));
}

TEST(Nemo2, ValidationIsAnEventWithTheLossOfTheNextLine) {
  Feed feed(nemo2_dialect());
  feed.line("Sanity checking Validation: iteration 1/2").line(k_nemo2_line);
  feed.line("Validation: iteration 1/2").line("Validation: iteration 2/2");
  feed.line("Training epoch 0, iteration 6/19 | global_step: 6 | reduced_train_loss: nan | val_loss: 10.42");
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.events.size(), 1u);
  EXPECT_EQ(log.events[0].step, 5);
  EXPECT_EQ(log.events[0].line, 3);
  EXPECT_DOUBLE_EQ(*log.events[0].value, 10.42);
  EXPECT_TRUE(std::isnan(*log.steps[1].loss) && log.steps[1].loss.known());
}

TEST(Nemo2, LayoutComesFromTheGroupLines) {
  Feed feed(nemo2_dialect());
  feed.line("[NeMo I 2025-03-07 22:33:57 megatron_init:426] Rank 0 has data parallel group : [0, 2, 4, 6]");
  feed.line("[NeMo I 2025-03-07 22:33:57 megatron_init:469] Rank 0 has tensor model parallel group: [0, 1]");
  const ExtractedLog& log = feed.finish();
  EXPECT_EQ(log.facts.data_parallel, 4);
  EXPECT_EQ(log.facts.tensor_parallel, 2);
  EXPECT_EQ(feed.confidence(), 0.0);
}

TEST(Nemo1, ARedrawnBarIsNoNewStep) {
  Feed feed(nemo1_dialect());
  feed.line(
      "Epoch 0: :   7%|7 | 1/15 [00:50<07:13, reduced_train_loss=11.50, global_step=0.000, "
      "consumed_samples=256.0, train_step_timing in s=49.50]");
  feed.line(
      "Epoch 0: :  13%|# | 2/15 [01:40<06:13, reduced_train_loss=11.50, global_step=0.000, "
      "consumed_samples=256.0, train_step_timing in s=49.50]");
  feed.line(
      "Epoch 0: :  13%|# | 2/15 [01:40<06:13, reduced_train_loss=11.40, global_step=1.000, "
      "consumed_samples=512.0, train_step_timing in s=49.00]");
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 2u);
  EXPECT_EQ(log.records, 2);
  EXPECT_EQ(log.steps[1].step, 1);
  EXPECT_DOUBLE_EQ(*log.steps[0].time_seconds, 49.5);
  EXPECT_DOUBLE_EQ(*log.steps[0].time_low, 49.45);  // three digits, padded with zeros
  EXPECT_DOUBLE_EQ(*log.steps[0].time_high, 49.55);
}

TEST(Nemo1, RoundedStepNumbersAreRepairedFromTheCountOfTheBar) {
  Feed feed(nemo1_dialect());
  feed.line("Epoch 0: : 99%|#| 999/1010 [1:00:00<00:10, reduced_train_loss=3.10, global_step=998.0]");
  feed.line("Epoch 0: : 99%|#| 1003/1010 [1:00:20<00:10, reduced_train_loss=3.11, global_step=1e+3]");
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 2u);
  EXPECT_EQ(log.steps[1].step, 1002);
  EXPECT_TRUE(has_note(log, "rounded"));
}

TEST(Nemo1, WithoutAnythingToRepairItTheRoundedStepStays) {
  Feed feed(nemo1_dialect());
  const ExtractedLog& log =
      feed.line(
              "Epoch 0: : 100%|#| 2000/2000 [43:24:54<00:00, reduced_train_loss=0.139, global_step=2e+3, "
              "train_step_timing in s=68.70, val_loss=0.212][NeMo I 2024-06-17 nlp_overrides:480] Removing checkpoint")
          .finish();
  ASSERT_EQ(log.steps.size(), 1u);
  EXPECT_EQ(log.steps[0].step, 2000);
  const LogEvent* evaluation = find_event(log, EventKind::evaluation);
  ASSERT_NE(evaluation, nullptr);
  EXPECT_DOUBLE_EQ(*evaluation->value, 0.212);
}

TEST(Nemo1, WithoutTimingTheMeanPaceIsMarkedAsDerived) {
  Feed feed(nemo1_dialect());
  const ExtractedLog& log = feed.line(
                                    "Epoch 0: 100%|###| 40/40 [00:31<00:00,  1.25it/s, loss=10.9, v_num=, "
                                    "reduced_train_loss=10.80, global_step=39.00]")
                                .finish();
  ASSERT_EQ(log.steps.size(), 1u);
  EXPECT_EQ(log.steps[0].step, 39);
  EXPECT_EQ(log.steps[0].time_source, TimeSource::from_rate);
  EXPECT_DOUBLE_EQ(*log.steps[0].time_seconds, 0.8);
  EXPECT_DOUBLE_EQ(*log.steps[0].loss, 10.8);
  EXPECT_TRUE(has_note(log, "derived"));
}

TEST(Nemo1, FinalBarsOfSeveralRunsStayApart) {
  Feed feed(nemo1_dialect());
  feed.line(
      "Epoch 0: : 100%|#| 50/50 [16:26<00:00, reduced_train_loss=11.70, global_step=49.00, train_step_timing in "
      "s=12.80]");
  feed.line(
      "Epoch 0: : 100%|#| 50/50 [23:22<00:00, reduced_train_loss=0.186, global_step=49.00, train_step_timing in "
      "s=24.00]");
  feed.line(
      "Epoch 0: : 100%|#| 100/100 [10:48<00:00, reduced_train_loss=6.37, global_step=99.00, train_step_timing "
      "in s=3.130]");
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 3u);
  EXPECT_EQ(log.steps[2].attempt, 2);
}

TEST(Nemo1, TheListOfALauncherIsNoStep) {
  Feed feed(nemo1_dialect());
  const ExtractedLog& log =
      feed.line("[NeMo I 2024-07-22 perf_metrics_utils:56] train_step_timing in s: [11.85, 6.98, 6.9]").finish();
  EXPECT_TRUE(log.steps.empty());
  EXPECT_EQ(feed.confidence(), 0.0);
}

TEST(MegatronBridge, SpeedLineGoesWithTheRecordBehindIt) {
  Feed feed(megatron_bridge_dialect());
  feed.line("Step Time : 4.02s GPU utilization: 851.6MODEL_TFLOP/s/GPU", {}, 0);
  feed.line(
      " iteration        7/      20 | consumed samples:          128 | elapsed time per iteration (ms): 4021.9 | "
      "learning rate: 2.0E-06 | global batch size:    64 | lm loss: 1.170000E+01 | loss scale: 1.0 | grad norm: "
      "9.800 | number of skipped iterations:   0 | number of nan iterations:   0 |",
      {}, 7);
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 1u);
  EXPECT_EQ(log.steps[0].step, 7);
  EXPECT_DOUBLE_EQ(*log.steps[0].time_seconds, 4.0219);
  EXPECT_DOUBLE_EQ(*log.steps[0].tflops_per_gpu, 851.6);
  EXPECT_FALSE(log.steps[0].mfu);
  EXPECT_FALSE(has_note(log, "counted"));
}

TEST(MegatronBridge, WithoutRecordsTheSpeedLinesAreCounted) {
  Feed feed(megatron_bridge_dialect());
  feed.line("Step Time : 81.04s GPU utilization: 74.4MODEL_TFLOP/s/GPU    # warm-up");
  feed.line("Step Time : 11.65s GPU utilization: 1158.1TFLOP/s/GPU");
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 2u);
  EXPECT_EQ(log.steps[1].step, 2);
  EXPECT_DOUBLE_EQ(*log.steps[1].time_seconds, 11.65);
  EXPECT_NEAR(*log.steps[1].time_low, 11.645, 1e-12);
  EXPECT_DOUBLE_EQ(*log.steps[1].tflops_per_gpu, 1158.1);
  EXPECT_TRUE(has_note(log, "counted"));
}

}  // namespace
}  // namespace tprimat::logs
