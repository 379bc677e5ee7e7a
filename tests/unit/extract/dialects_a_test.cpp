// What NeMo, Megatron-Bridge and DeepSpeed print, line by line.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "unit/extract/line_feed.h"

namespace tprimat {

Dialect nemo1_dialect(), nemo2_dialect(), megatron_bridge_dialect(), deepspeed_dialect(), deepspeed_rlhf_dialect();

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
  feed.line("All distributed processes registered. Starting with 8 processes");
  const ExtractedLog& log = feed.finish();
  EXPECT_EQ(log.facts.data_parallel, 4);
  EXPECT_EQ(log.facts.tensor_parallel, 2);
  EXPECT_EQ(log.facts.gpu_count, 8);
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

constexpr double k_noon = 1.7e9;

Feed& feed_deepspeed_pair(Feed& feed, int step, double stamp, std::string_view rate) {
  const std::string number = std::to_string(step);
  feed.line(
      " [INFO] [logging.py:96:log_dist] [Rank 0] step=" + number + ", skipped=6, lr=[9.6e-06, 9.6e-06], mom=[(0.9)]",
      stamp);
  return feed.line(" [INFO] [timer.py:199:stop] epoch=0/micro_step=" + number + "/global_step=" + number +
                       ", RunningAvgSamplesPerSec=173.4, CurrSamplesPerSec=" + std::string(rate) +
                       ", MemAllocated=3.96GB, MaxMemAllocated=22.95GB",
                   stamp + 0.03);
}

TEST(Deepspeed, APairIsOneStepAndItsTimeComesFromTheStamps) {
  Feed feed(deepspeed_dialect());
  feed_deepspeed_pair(feed, 10, k_noon, "171.979");
  feed_deepspeed_pair(feed, 20, k_noon + 8.0, "171.4");
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 2u);
  EXPECT_EQ(log.records, 2);
  EXPECT_EQ(log.steps[0].time_source, TimeSource::none);
  EXPECT_DOUBLE_EQ(*log.steps[0].samples_per_second, 171.979);
  EXPECT_DOUBLE_EQ(*log.steps[0].learning_rate, 9.6e-06);
  EXPECT_EQ(log.steps[1].time_source, TimeSource::from_timestamps);
  EXPECT_DOUBLE_EQ(*log.steps[1].time_seconds, 0.8);
  EXPECT_EQ(log.steps[1].mean_of, 10);
  EXPECT_FALSE(log.steps[1].skipped);
  EXPECT_NEAR(log.memory_gb.at({0, MemoryKind::peak_allocated}), 22.95 * 1.073741824, 1e-9);
  EXPECT_TRUE(has_note(log, "time stamps"));
}

TEST(Deepspeed, WithTheBatchSizeTheRateTellsTheTime) {
  Feed feed(deepspeed_dialect());
  feed.line(" [INFO] [config.py:752:print]   train_batch_size ............. 64");
  feed_deepspeed_pair(feed, 10, k_noon, "128.0");
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 1u);
  EXPECT_EQ(log.steps[0].time_source, TimeSource::from_rate);
  EXPECT_DOUBLE_EQ(*log.steps[0].time_seconds, 0.5);
  EXPECT_EQ(log.steps[0].mean_of, 1);
  EXPECT_TRUE(has_note(log, "CurrSamplesPerSec"));
}

TEST(Deepspeed, EvaluationBetweenTwoStampsIsLabelled) {
  Feed feed(deepspeed_dialect());
  feed_deepspeed_pair(feed, 10, k_noon, "64");
  feed.line("ppl: 20.0");
  feed_deepspeed_pair(feed, 20, k_noon + 30, "64");
  feed_deepspeed_pair(feed, 30, k_noon + 40, "64");
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 3u);
  EXPECT_TRUE(log.steps[1].with_evaluation);
  EXPECT_FALSE(log.steps[2].with_evaluation);
  const LogEvent* evaluation = find_event(log, EventKind::evaluation);
  ASSERT_NE(evaluation, nullptr);
  EXPECT_EQ(evaluation->step, 10);
  EXPECT_DOUBLE_EQ(*evaluation->value, std::log(20.0));
}

TEST(Deepspeed, ARecordBeforeTheFirstUpdateIsNoStep) {
  Feed feed(deepspeed_dialect());
  const ExtractedLog& log =
      feed.line(" [INFO] [logging.py:96:log_dist] [Rank 0] step=0, skipped=0, lr=[0.0001], mom=[(0.9, 0.95)]").finish();
  EXPECT_TRUE(log.steps.empty());
}

TEST(Deepspeed, PipelineEnginePrintsTimeAndLoss) {
  Feed feed(deepspeed_dialect());
  feed.line(" [INFO] [logging.py:60:log_dist] [Rank 0] step=10, skipped=0, lr=[0.001], mom=[[0.9]]", k_noon);
  feed.line("steps: 10 loss: 4.2500 iter time (s): 0.512 samples/sec: 31.250");
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 1u);
  EXPECT_EQ(log.steps[0].time_source, TimeSource::printed);
  EXPECT_DOUBLE_EQ(*log.steps[0].time_seconds, 0.512);
  EXPECT_DOUBLE_EQ(*log.steps[0].loss, 4.25);
}

TEST(Deepspeed, TimerOfAResumedRunGoesWithTheStepBeforeIt) {
  Feed feed(deepspeed_dialect());
  feed.line(" [INFO] [logging.py:96:log_dist] [Rank 0] step=1010, skipped=0, lr=[2e-05], mom=[(0.9)]", k_noon);
  feed.line(
      " [INFO] [timer.py:215:stop] epoch=0/micro_step=10/global_step=10, RunningAvgSamplesPerSec=63.0, "
      "CurrSamplesPerSec=64.0, MemAllocated=1.0GB, MaxMemAllocated=2.0GB");
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 1u);
  EXPECT_EQ(log.steps[0].step, 1010);
  EXPECT_DOUBLE_EQ(*log.steps[0].samples_per_second, 64.0);
  EXPECT_TRUE(has_note(log, "another start"));
}

TEST(Deepspeed, CommandLineGivesFacts) {
  Feed feed(deepspeed_dialect());
  feed.line("cmd = deepspeed main.py --model_name_or_path acme/tiny --max_seq_len 512 --seed=7 --deepspeed --data a b");
  const ExtractedLog& log = feed.finish();
  EXPECT_EQ(log.facts.model, "acme/tiny");
  EXPECT_EQ(log.facts.sequence_length, 512);
  EXPECT_EQ(log.facts.seed, 7);
  EXPECT_EQ(log.settings.at("deepspeed"), "true");
  EXPECT_EQ(log.settings.at("data"), "a");
}

TEST(DeepspeedRlhf, CountsRoundsAndNotTheTwoEngines) {
  Feed feed(deepspeed_rlhf_dialect());
  for (const char* lr : {"1e-06", "5e-07"})
    feed.line(std::string("[Rank 0] step=10, skipped=0, lr=[") + lr + "], mom=[(0.9, 0.95)]");
  feed.line("epoch: 0|step: 15|ppo_ep: 1|act_loss: 0.25|cri_loss: 0.125|unsuper_loss: 0.0");
  feed.line(
      "|E2E latency=7.99s |Gather latency=0.00s (0.00%) |Generate time=5.26s (65.81%) |Training time=2.52s "
      "(31.46%) |Others=0.22 (2.73%)|CurSamplesPerSec=8.01 |AvgSamplesPerSec=8.02");
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 1u);
  EXPECT_EQ(log.steps[0].step, 15);
  EXPECT_DOUBLE_EQ(*log.steps[0].time_seconds, 7.99);
  EXPECT_DOUBLE_EQ(*log.steps[0].samples_per_second, 8.01);
  EXPECT_FALSE(log.steps[0].loss);
}

TEST(DeepspeedRlhf, NewerWordsAndEpochsThatCountAnew) {
  Feed feed(deepspeed_rlhf_dialect());
  feed.line("Epoch: 0 | Step: 0 | PPO Epoch: 1 | Actor Loss: 0.21 | Critic Loss: nan | Unsupervised Loss: 0.0");
  feed.line(
      "End-to-End => Latency: 9.42s, TFLOPs: 44.30, Samples/sec: 3.40, Time/seq 0.29s, Batch Size: 32, Total "
      "Seq. Length: 512");
  feed.line("Generation => Latency: 5.02s, Per-token Latency 19.61 ms, TFLOPs: 5.10");
  feed.line("Epoch: 1 | Step: 0 | PPO Epoch: 1 | Actor Loss: 0.21 | Critic Loss: 0.1 | Unsupervised Loss: 0.0");
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 2u);
  EXPECT_DOUBLE_EQ(*log.steps[0].time_seconds, 9.42);
  EXPECT_DOUBLE_EQ(*log.steps[0].tflops_per_gpu, 44.3);
  EXPECT_DOUBLE_EQ(*log.steps[0].global_batch_size, 32);
  EXPECT_EQ(log.steps[1].step, 1);
  EXPECT_FALSE(log.steps[1].time_seconds);
  EXPECT_NE(find_event(log, EventKind::nan), nullptr);
}

}  // namespace
}  // namespace tprimat
