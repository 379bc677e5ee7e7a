// What DeepSpeed and DeepSpeed-Chat print, line by line.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "unit/extract/line_feed.h"

namespace tprimat::logs {

Dialect deepspeed_dialect(), deepspeed_rlhf_dialect();

namespace {

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
  EXPECT_TRUE(has_note(log, "start at different steps"));
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
}  // namespace tprimat::logs
