#include "base/error.h"
#include "unit/extract/dialect_reading.h"

namespace tprimat::logs {
namespace {

TEST(StepFile, ReadsOurRecords) {
  const Reading reading = read_fixture("steps", "steps/adapter.log");
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_DOUBLE_EQ(*step(reading, 1).time_seconds, 2.5);
  EXPECT_TRUE(is_nan(step(reading, 2).loss));
  EXPECT_FALSE(step(reading, 1).grad_norm.known());
  EXPECT_DOUBLE_EQ(memory(reading, -1, MemoryKind::allocated), 13.5);
}

TEST(Native, ReadsItsOwnConsole) {
  const Reading reading = read_fixture("native", "native/console.log");
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_DOUBLE_EQ(*step(reading, 1).time_seconds, 0.9505);
  EXPECT_TRUE(is_nan(step(reading, 2).loss));
  EXPECT_EQ(reading.log.facts.precision, Precision::bf16);
  EXPECT_EQ(reading.log.facts.parameters, 124439808);
  EXPECT_EQ(reading.log.settings.at("attention"), "cudnn forward, own backward");
  EXPECT_GT(reading.confidence, 0.95);
}

TEST(Native, KnowsOverflowsAndEvaluations) {
  const Reading reading = read_fixture("native", "native/fp16.log");
  ASSERT_EQ(reading.log.steps.size(), 3u);
  EXPECT_TRUE(step(reading, 1).skipped);
  EXPECT_FALSE(step(reading, 1).grad_norm.known());
  EXPECT_DOUBLE_EQ(*step(reading, 1).loss_scale, 4096);
  EXPECT_FALSE(step(reading, 2).skipped);
  EXPECT_EQ(count(reading, EventKind::skipped_update), 1);
  EXPECT_EQ(count(reading, EventKind::nan), 0);
  EXPECT_FALSE(step(reading, 3).with_evaluation);  // its time leaves evaluations out
}

TEST(ResultJson, ReadsAnOlderResult) {
  const Dialect& dialect = find_dialect("result");
  const std::string text = fixture("result/older.json");
  EXPECT_TRUE(dialect.is_document(text));
  const Reading reading = read_text(dialect, text);
  ASSERT_EQ(reading.log.steps.size(), 3u);
  EXPECT_DOUBLE_EQ(*step(reading, 1).time_seconds, 5);
  EXPECT_DOUBLE_EQ(*step(reading, 3).loss, 8);
  EXPECT_EQ(reading.log.facts.gpu_count, 8);
  EXPECT_DOUBLE_EQ(memory(reading, -1, MemoryKind::peak_allocated), 22.5);
  EXPECT_THROW(read_text(dialect, "{\"step_times\": [1.0]}"), Error);
  EXPECT_THROW(read_text(dialect, "{\"step_times\": [1.0"), Error);
}

}  // namespace
}  // namespace tprimat::logs
