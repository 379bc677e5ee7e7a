// What the Hugging Face Trainer prints and stores.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "unit/extract/line_feed.h"

namespace tprimat::logs {

Dialect hf_trainer_dialect(), trainer_state_dialect();

namespace {

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
}  // namespace tprimat::logs
