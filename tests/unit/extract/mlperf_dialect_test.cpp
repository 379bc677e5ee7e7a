#include "unit/extract/dialect_reading.h"

namespace tprimat::logs {
namespace {

TEST(Mlperf, TurnsSamplesIntoSteps) {
  const Reading reading = read_fixture("mlperf", "mlperf/samples.log");
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_DOUBLE_EQ(*step(reading, 1).time_seconds, 54.5);
  EXPECT_EQ(step(reading, 1).time_source, TimeSource::printed);
  EXPECT_DOUBLE_EQ(*step(reading, 1).tokens, 1152.0 * 8192);
  EXPECT_TRUE(is_nan(step(reading, 2).loss));
  EXPECT_DOUBLE_EQ(*step(reading, 2).time_seconds, 55.5);  // not the mean over the block
  EXPECT_TRUE(has_note(reading, "counts samples"));
  EXPECT_TRUE(has_note(reading, "malformed"));
  EXPECT_EQ(reading.log.facts.gpu_count, 16);
  EXPECT_EQ(reading.log.facts.gpu_name, "B200-SXM-180GB");
  EXPECT_EQ(count(reading, EventKind::failed), 1);  // status aborted
  ASSERT_EQ(count(reading, EventKind::evaluation), 1);
  EXPECT_NEAR(*reading.log.events[0].seconds, 20, 1e-6);
}

TEST(Mlperf, TurnsTokensIntoSteps) {
  const Reading reading = read_fixture("mlperf", "mlperf/tokens.log");
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_EQ(reading.log.steps.front().step, 1);
  EXPECT_EQ(reading.log.steps.back().step, 2);
  EXPECT_TRUE(has_note(reading, "counts tokens"));
  EXPECT_EQ(reading.log.facts.gpu_count, 2);  // two init_start on one line
}

TEST(Mlperf, DerivesTimesFromStampsAndMarksEvaluations) {
  const Reading reading = read_fixture("mlperf", "mlperf/losses_and_rates.log");
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_EQ(step(reading, 10).time_source, TimeSource::from_timestamps);
  EXPECT_NEAR(*step(reading, 10).time_seconds, 1.6, 1e-9);
  EXPECT_FALSE(step(reading, 10).with_evaluation);
  EXPECT_TRUE(step(reading, 20).with_evaluation);
  EXPECT_DOUBLE_EQ(*step(reading, 20).learning_rate, 0.0004);
  EXPECT_FALSE(reading.log.facts.gpu_count.has_value());  // "1xMI300X" counts systems
  EXPECT_EQ(reading.log.facts.platform, Platform::amd);
}

TEST(Mlperf, TakesRatesWhereThereIsNothingFiner) {
  std::string text = fixture("mlperf/losses_and_rates.log");
  for (size_t at; (at = text.find("\"train_loss\"")) != std::string::npos;) text.replace(at, 12, "\"other_loss\"");
  const Reading reading = read_text(find_dialect("mlperf"), text);
  ASSERT_EQ(reading.log.steps.size(), 1u);
  EXPECT_EQ(reading.log.steps[0].step, 20);
  EXPECT_EQ(reading.log.steps[0].time_source, TimeSource::from_rate);
  EXPECT_NEAR(*reading.log.steps[0].time_seconds, 8 / 4.8, 1e-9);
}

}  // namespace
}  // namespace tprimat::logs
