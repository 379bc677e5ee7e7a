#include "unit/extract/dialect_reading.h"

namespace tprimat::logs {
namespace {

TEST(Nanotron, KeepsTheIntervalOfRoundedNumbers) {
  const Reading reading = read_fixture("nanotron", "nanotron/human_numbers.log");
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_NEAR(*step(reading, 100).time_seconds, 28.2, 1e-9);
  EXPECT_NEAR(*step(reading, 100).time_low, 28.15, 1e-9);
  EXPECT_NEAR(*step(reading, 100).time_high, 28.25, 1e-9);
  EXPECT_NEAR(*step(reading, 110).time_low, 27.95, 1e-9);  // "28K" has lost a zero, not a digit
  EXPECT_EQ(step(reading, 110).mean_of, 10);
  EXPECT_TRUE(is_nan(step(reading, 110).loss));
  EXPECT_FALSE(step(reading, 100).global_batch_size.known());  // "1.02K"
  EXPECT_NEAR(*step(reading, 100).memory_reserved_gb, 34.1, 1e-9);
}

TEST(Nanotron, CountsDevicesWhereOneNumberFits) {
  EXPECT_EQ(read_fixture("nanotron", "nanotron/human_numbers.log").log.facts.gpu_count, 32);
  const Reading vague = read_text(find_dialect("nanotron"),
                                  "iteration: 1 / 9 | time_per_iteration_ms: 272 | tokens_per_sec: 9.9M | "
                                  "tokens_per_sec_per_gpu: 1.01K | lm_loss: 2");
  EXPECT_EQ(vague.log.steps.size(), 1u);
  EXPECT_FALSE(vague.log.facts.gpu_count.has_value());
}

TEST(Picotron, DerivesTheTimeFromRoundedRates) {
  const Reading reading = read_fixture("picotron", "picotron/console.log");
  ASSERT_EQ(reading.log.steps.size(), 2u);
  const ExtractedStep& first = step(reading, 1);
  EXPECT_EQ(first.rank, 3);
  EXPECT_EQ(first.time_source, TimeSource::from_rate);
  EXPECT_NEAR(*first.time_seconds, 4.19e6 / 209710, 1e-9);
  EXPECT_NEAR(*first.time_low, 4.185e6 / 209715, 1e-6);
  EXPECT_NEAR(*first.time_high, 4.195e6 / 209705, 1e-6);
  EXPECT_EQ(reading.log.facts.gpu_count, 4);
  EXPECT_DOUBLE_EQ(*first.memory_reserved_gb, 61.52);
}

}  // namespace
}  // namespace tprimat::logs
