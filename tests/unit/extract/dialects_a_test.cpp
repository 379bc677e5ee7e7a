// What NeMo, Megatron-Bridge, DeepSpeed and the Hugging Face Trainer print, line by line.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "extract/dialect.h"
#include "extract/dialects/progress_bar.h"
#include "extract/scan_text.h"

namespace tprimat {

Dialect nemo1_dialect(), nemo2_dialect(), megatron_bridge_dialect(), deepspeed_dialect(), deepspeed_rlhf_dialect(),
    hf_trainer_dialect(), trainer_state_dialect();

namespace {

// Feeds one reader, line by line, and lets nothing pass that no anchor would let pass.
class Feed {
 public:
  explicit Feed(const Dialect& dialect) : anchors_(dialect.anchors), reader_(dialect.make_reader()) {}

  Feed& line(std::string_view text, Figure unix_time = {}, int32_t rank = -1) {
    ++number_;
    bool shown = wants_more_;
    for (const std::string_view anchor : anchors_) shown |= contains(text, anchor);
    LogLine line;
    line.text = text, line.number = number_, line.rank = rank, line.unix_time = unix_time;
    if (shown) wants_more_ = reader_->read_line(line, log_);
    return *this;
  }
  const ExtractedLog& finish() {
    reader_->finish(log_);
    return log_.log();
  }
  double confidence() const { return reader_->confidence(log_.log()); }

 private:
  std::vector<std::string_view> anchors_;
  std::unique_ptr<LogReader> reader_;
  LogBuilder log_;
  int64_t number_ = 0;
  bool wants_more_ = false;
};

bool has_note(const ExtractedLog& log, std::string_view part) {
  for (const std::string& note : log.notes)
    if (contains(note, part)) return true;
  return false;
}

const LogEvent* find_event(const ExtractedLog& log, EventKind kind) {
  for (const LogEvent& event : log.events)
    if (event.kind == kind) return &event;
  return nullptr;
}

TEST(ProgressBar, IsTakenApart) {
  std::string_view text =
      "Epoch 0: :  47%|####7     | 7/15 [1:06:19<07:13, 2.50s/it, loss=11.50, v_num=, lr=1e-4][NeMo I] text";
  const auto bar = take_progress_bar(text);
  ASSERT_TRUE(bar);
  EXPECT_EQ(bar->title, "Epoch 0");
  EXPECT_EQ(bar->reading.count, 7);
  EXPECT_EQ(bar->reading.total, 15);
  EXPECT_DOUBLE_EQ(bar->reading.elapsed_seconds, 3979.0);
  ASSERT_TRUE(bar->reading.seconds_per_count);
  EXPECT_DOUBLE_EQ(bar->reading.seconds_per_count->value, 2.5);
  EXPECT_DOUBLE_EQ(bar->reading.seconds_per_count->high, 2.505);
  EXPECT_EQ(postfix_value(bar->postfix, "loss"), "11.50");
  EXPECT_EQ(postfix_value(bar->postfix, "v_num"), "");
  EXPECT_EQ(postfix_value(bar->postfix, "lr"), "1e-4");
  EXPECT_FALSE(postfix_value(bar->postfix, "num"));
  EXPECT_EQ(text, "[NeMo I] text");
  EXPECT_FALSE(take_progress_bar(text));
}

TEST(ProgressBar, RatePerSecondBecomesSecondsWithTheInversesOfItsBounds) {
  std::string_view text = " 10%|#  | 1/10 [00:00<00:07, 1.25it/s]";
  const auto bar = take_progress_bar(text);
  ASSERT_TRUE(bar && bar->reading.seconds_per_count);
  EXPECT_EQ(bar->unit, "it");
  EXPECT_EQ(bar->title, "");
  EXPECT_DOUBLE_EQ(bar->reading.seconds_per_count->value, 0.8);
  EXPECT_DOUBLE_EQ(bar->reading.seconds_per_count->low, 1 / 1.255);
  EXPECT_DOUBLE_EQ(bar->reading.seconds_per_count->high, 1 / 1.245);
}

TEST(ProgressBar, OfAnUnknownPaceHasNone) {
  std::string_view text = "  0%|          | 0/16 [00:00<?, ?it/s]";
  const auto bar = take_progress_bar(text);
  ASSERT_TRUE(bar);
  EXPECT_FALSE(bar->reading.seconds_per_count);
}

TEST(ProgressBar, BrokenOnesAreNone) {
  for (std::string_view text : {"", " [", "1/2 [", "x/2 [00:01]", "1/ [00:01]", " 3 [12:00]", "[00:01<00:02]",
                                "99999999999999999999/2 [00:01]", "see 1/2 [a:b]"})
    EXPECT_FALSE(take_progress_bar(text)) << text;
}

TEST(ProgressBar, ShortDistancesTakeThePaceAndLongOnesTheClock) {
  const BarReading start{0, 100, 0.0, {}};
  ExtractedStep step;
  derive_step_time(start, {4, 100, 3.0, RoundedNumber{0.8, 0.79, 0.81}}, step);
  EXPECT_EQ(step.time_source, TimeSource::from_rate);
  EXPECT_DOUBLE_EQ(*step.time_seconds, 0.8);
  EXPECT_EQ(step.mean_of, 4);
  derive_step_time(start, {50, 100, 40.0, RoundedNumber{0.8, 0.79, 0.81}}, step);
  EXPECT_EQ(step.time_source, TimeSource::from_timestamps);
  EXPECT_DOUBLE_EQ(*step.time_seconds, 0.8);
  EXPECT_DOUBLE_EQ(*step.time_low, 39.0 / 50);
  EXPECT_DOUBLE_EQ(*step.time_high, 41.0 / 50);
}

TEST(ProgressBar, WithoutProgressTellsNoTime) {
  ExtractedStep step;
  derive_step_time({5, 10, 10.0, {}}, {5, 10, 60.0, {}}, step);
  derive_step_time({5, 10, 10.0, {}}, {4, 10, 60.0, {}}, step);
  EXPECT_FALSE(step.time_seconds);
}

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

constexpr std::string_view k_dicts[] = {
    "{'loss': 2.5, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': 0.25}",
    "{'loss': 2.25, 'grad_norm': 1.25, 'learning_rate': 5e-06, 'epoch': 0.5}",
    "{'loss': nan, 'grad_norm': nan, 'learning_rate': 1e-06, 'epoch': 0.75}",
};

TEST(HfTrainer, StepAndTimeComeFromTheBar) {
  Feed feed(hf_trainer_dialect());
  feed.line("  0%|          | 0/20 [00:00<?, ?it/s]");
  feed.line("  5%|5         | 1/20 [00:03<00:57,  3.00s/it]");
  feed.line(" 20%|##        | 4/20 [00:15<00:45,  3.00s/it]").line(k_dicts[0]);
  feed.line(" 25%|##5       | 5/20 [00:15<00:45,  3.00s/it]");  // drawn again, with the exact count
  feed.line(" 50%|#####     | 10/20 [00:35<00:30,  3.00s/it]").line(k_dicts[1]);
  feed.line(" 50%|#####     | 10/20 [00:35<00:30,  3.00s/it]");
  feed.line("100%|##########| 8/8 [00:04<00:00,  2.00it/s]");
  feed.line("{'eval_loss': 2.125, 'eval_runtime': 4.5, 'epoch': 0.5}");
  feed.line(" 75%|#######5  | 15/20 [01:00<00:16,  3.40s/it]").line(k_dicts[2]);
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 3u);
  EXPECT_EQ(log.steps[0].step, 5);
  EXPECT_EQ(log.steps[1].step, 10);
  EXPECT_DOUBLE_EQ(*log.steps[1].time_seconds, 4.0);
  EXPECT_DOUBLE_EQ(*log.steps[1].time_high, 21.0 / 5);
  EXPECT_EQ(log.steps[1].mean_of, 5);
  EXPECT_FALSE(log.steps[1].with_evaluation);
  EXPECT_TRUE(log.steps[2].with_evaluation);
  EXPECT_TRUE(log.steps[2].loss.known() && std::isnan(*log.steps[2].loss));
  const LogEvent* evaluation = find_event(log, EventKind::evaluation);
  ASSERT_NE(evaluation, nullptr);
  EXPECT_DOUBLE_EQ(*evaluation->seconds, 4.5);
  EXPECT_DOUBLE_EQ(*evaluation->value, 2.125);
}

TEST(HfTrainer, WithoutAnythingElseRecordsAreCounted) {
  Feed feed(hf_trainer_dialect());
  for (const std::string_view dict : k_dicts) feed.line(dict);
  feed.line("{'train_runtime': 437.8544, 'train_samples_per_second': 25.132, 'train_steps_per_second': 3.145}");
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 3u);
  EXPECT_EQ(log.steps[2].step, 3);
  EXPECT_FALSE(log.steps[2].time_seconds);
  EXPECT_TRUE(has_note(log, "counted from 1"));
  EXPECT_TRUE(has_note(log, "437.8544 s"));
}

TEST(HfTrainer, RecordsWrittenInBlocksBehindTheBarFollowLoggingSteps) {
  Feed feed(hf_trainer_dialect());
  feed.line("TrainingArguments(").line("fsdp_config={'min_num_params': 0, 'xla': False},").line("logging_steps=5,");
  feed.line("lr_scheduler_type=SchedulerType.COSINE,").line(")").line("logging_steps=99,");
  feed.line("100%|##########| 15/15 [00:30<00:00,  2.00s/it]");
  for (const std::string_view dict : k_dicts) feed.line(dict);
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 3u);
  EXPECT_EQ(log.steps[0].step, 5);
  EXPECT_EQ(log.steps[2].step, 15);
  EXPECT_EQ(log.facts.schedule, "cosine");
  EXPECT_TRUE(has_note(log, "logging_steps"));
}

TEST(HfTrainer, QuotedNumbersAndCopiesOfOtherRanks) {
  Feed feed(hf_trainer_dialect());
  for (int rank = 0; rank < 2; ++rank)
    feed.line("{'loss': '0.3063', 'grad_norm': '43.4', 'learning_rate': '1.37e-05', 'epoch': '2.18'}", {}, rank);
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 1u);
  EXPECT_DOUBLE_EQ(*log.steps[0].loss, 0.3063);
  EXPECT_DOUBLE_EQ(*log.steps[0].learning_rate, 1.37e-05);
  EXPECT_EQ(log.records, 2);
}

TEST(HfTrainer, WithoutLossesTheBarTellsTheSteps) {
  Feed feed(hf_trainer_dialect());
  feed.line("***** Running training *****").line("  Total optimization steps = 3");
  feed.line("Map: 100%|##########| 3/3 [00:02<00:00, 450.00it/s]");
  for (int rank = 0; rank < 2; ++rank) {  // bars of two ranks, one behind the other
    feed.line("  0%|          | 0/3 [00:00<?, ?it/s]").line(" 33%|###3      | 1/3 [00:20<00:40, 20.10s/it]");
    feed.line(" 67%|######6   | 2/3 [00:41<00:20, 20.60s/it]").line("100%|##########| 3/3 [01:01<00:00, 20.30s/it]");
  }
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 3u);
  EXPECT_EQ(log.records, 3);
  EXPECT_DOUBLE_EQ(*log.steps[1].time_seconds, 21.0);
  EXPECT_EQ(log.steps[1].time_source, TimeSource::from_timestamps);
  EXPECT_EQ(log.steps[2].attempt, 0);
}

TEST(HfTrainer, ASecondStartIsAnotherAttempt) {
  Feed feed(hf_trainer_dialect());
  for (int start = 0; start < 2; ++start) {
    feed.line("***** Running training *****").line("  Total optimization steps = 9");
    feed.line("  0%|          | 0/9 [00:00<?, ?it/s]").line(" 33%|###3      | 3/9 [00:30<01:00, 10.00s/it]");
    feed.line(k_dicts[start]).line(" 33%|###3      | 3/9 [00:30<01:00, 10.00s/it]");
    feed.line(" 67%|######6   | 6/9 [01:00<00:30, 10.00s/it]");
    feed.line("{'loss': 1.5, 'grad_norm': 1.0, 'learning_rate': 1e-06, 'epoch': 0.9}");
  }
  const ExtractedLog& log = feed.finish();
  ASSERT_EQ(log.steps.size(), 4u);
  EXPECT_EQ(log.steps[1].attempt, 0);
  EXPECT_EQ(log.steps[2].attempt, 1);
  EXPECT_EQ(log.steps[2].step, 3);
  EXPECT_DOUBLE_EQ(*log.steps[3].time_seconds, 10.0);
}

TEST(TrainerState, HistoryWithNanAndEvaluation) {
  const std::string text =
      "{\n  \"global_step\": 25,\n  \"log_history\": [\n"
      "    {\"loss\": 4.5, \"grad_norm\": NaN, \"learning_rate\": 0.0002, \"step\": 10, \"note\": \"NaN, \\\"NaN\"},\n"
      "    {\"loss\": NaN, \"step\": 20},\n    {\"eval_loss\": 3.5, \"eval_runtime\": 2.5, \"step\": 20},\n"
      "    {\"step\": 25, \"train_runtime\": 50.0, \"train_loss\": 3.5}\n  ],\n  \"max_steps\": 25\n}\n";
  const Dialect dialect = trainer_state_dialect();
  EXPECT_TRUE(dialect.is_document(text));
  EXPECT_FALSE(dialect.is_document("log_history"));
  LogBuilder log;
  dialect.read_document(text, log);
  ASSERT_EQ(log.log().steps.size(), 2u);
  EXPECT_EQ(log.log().steps[0].line, 4);
  EXPECT_EQ(log.log().steps[1].mean_of, 10);
  EXPECT_TRUE(log.log().steps[1].loss.known() && std::isnan(*log.log().steps[1].loss));
  EXPECT_FALSE(log.log().steps[0].time_seconds);
  EXPECT_EQ(log.log().facts.max_steps, 25);
  EXPECT_TRUE(has_note(log.log(), "2 s per step"));
  EXPECT_DOUBLE_EQ(*find_event(log.log(), EventKind::evaluation)->value, 3.5);
}

TEST(TrainerState, DamagedOnesAreRefused) {
  LogBuilder log;
  const Dialect dialect = trainer_state_dialect();
  for (const char* text : {"{\"log_history\": [", "{\"log_history\": 5}", "[1]", ""})
    EXPECT_THROW(dialect.read_document(text, log), Error) << text;
}

}  // namespace
}  // namespace tprimat
