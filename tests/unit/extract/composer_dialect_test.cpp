#include "unit/extract/dialect_reading.h"

namespace tprimat::logs {
namespace {

TEST(Composer, GathersTheLinesOfABatch) {
  const Reading reading = read_fixture("composer", "composer/multi_line.log");
  ASSERT_EQ(reading.log.steps.size(), 3u);
  EXPECT_DOUBLE_EQ(*step(reading, 1).loss, 12.0);
  EXPECT_DOUBLE_EQ(*step(reading, 1).learning_rate, 0.0001);
  EXPECT_TRUE(is_nan(step(reading, 11).loss));
  EXPECT_DOUBLE_EQ(*step(reading, 11).grad_norm, 1.5);
  EXPECT_DOUBLE_EQ(*step(reading, 12).mfu, 0.41);
  EXPECT_EQ(reading.log.facts.micro_batch_size, 8);
  EXPECT_DOUBLE_EQ(memory(reading, 0, MemoryKind::peak_reserved), 20.965);
  ASSERT_EQ(count(reading, EventKind::evaluation), 1);
  EXPECT_EQ(reading.log.events[0].step, 11);
}

TEST(Composer, TakesHoursAndWindows) {
  const Reading reading = read_fixture("composer", "composer/multi_line.log");
  EXPECT_NEAR(*step(reading, 1).time_seconds, 18, 1e-9);    // 0.0050 h since the start
  EXPECT_NEAR(*step(reading, 11).time_seconds, 1.8, 1e-9);  // 0.0050 h over ten steps
  EXPECT_NEAR(*step(reading, 11).time_high, 1.836, 1e-9);
  EXPECT_EQ(step(reading, 12).time_source, TimeSource::from_rate);
  EXPECT_NEAR(*step(reading, 12).time_seconds, 2, 1e-9);
}

}  // namespace
}  // namespace tprimat::logs
