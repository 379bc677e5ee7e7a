#include "unit/extract/dialect_reading.h"

namespace tprimat::logs {
namespace {

TEST(Litgpt, SumsTheMicroBatchesOfAStep) {
  const Reading reading = read_fixture("litgpt", "litgpt/finetune.log");
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_EQ(reading.log.records, 4);
  EXPECT_NEAR(*step(reading, 1).time_seconds, 1.36903, 1e-9);
  EXPECT_DOUBLE_EQ(*step(reading, 1).loss, 1.66);
  EXPECT_NEAR(*step(reading, 2).time_seconds, 0.89534, 1e-9);
  EXPECT_EQ(reading.log.facts.global_batch_size, 16);
  EXPECT_EQ(reading.log.facts.parameters, 2791910400);
  EXPECT_DOUBLE_EQ(memory(reading, -1, MemoryKind::peak_allocated), 13.9);
  ASSERT_EQ(count(reading, EventKind::evaluation), 1);
  EXPECT_DOUBLE_EQ(*reading.log.events[0].seconds, 2.5);
  EXPECT_TRUE(has_note(reading, "ends inside a step"));
}

TEST(Litgpt, DoesNotTakeOneMicroBatchForAStep) {
  const Reading reading = read_fixture("litgpt", "litgpt/pretrain_every_64th.log");
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_EQ(step(reading, 2).time_source, TimeSource::none);
  EXPECT_DOUBLE_EQ(*step(reading, 2).loss, 7.1);
  EXPECT_TRUE(has_note(reading, "lines of a step are missing"));
}

TEST(Litgpt, ReadsItsFirstYear) {
  const Reading reading = read_fixture("litgpt", "litgpt/lit_gpt_2023.log");
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_NEAR(*step(reading, 1).time_seconds, 0.12345, 1e-9);
  EXPECT_DOUBLE_EQ(*step(reading, 2).loss, 10.2);
}

}  // namespace
}  // namespace tprimat::logs
