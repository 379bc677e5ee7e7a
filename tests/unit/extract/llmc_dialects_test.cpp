#include "unit/extract/dialect_reading.h"

namespace tprimat::logs {
namespace {

TEST(Llmc, ReadsStepsTableAndMemory) {
  const Reading reading = read_fixture("llmc", "llmc/stdout.log");
  ASSERT_EQ(reading.log.steps.size(), 3u);
  EXPECT_DOUBLE_EQ(*step(reading, 1).time_seconds, 2.73472);
  EXPECT_EQ(step(reading, 1).time_source, TimeSource::printed);
  EXPECT_DOUBLE_EQ(*step(reading, 1).tokens, 524288);
  EXPECT_DOUBLE_EQ(*step(reading, 1).global_batch_size, 512);
  EXPECT_DOUBLE_EQ(*step(reading, 2).tokens_per_second_per_gpu, 1747626 / 8.0);
  EXPECT_EQ(reading.log.facts.gpu_name, "NVIDIA GeForce RTX 5099");
  EXPECT_EQ(reading.log.facts.parameters, 124475904);
  EXPECT_EQ(reading.log.facts.precision, Precision::bf16);
  EXPECT_EQ(reading.log.facts.gpu_count, 8);
  EXPECT_EQ(reading.log.settings.at("LR scheduler"), "cosine");
  EXPECT_NEAR(memory(reading, -1, MemoryKind::device_used), 21315 * k_mib / 1e9, 1e-9);
}

TEST(Llmc, TakesMinus100PercentForUnknown) {
  const Reading reading = read_fixture("llmc", "llmc/stdout.log");
  EXPECT_FALSE(step(reading, 2).mfu.known());
  EXPECT_FALSE(reading.log.facts.peak_flops.has_value());
  EXPECT_TRUE(has_note(reading, "-100 %"));
}

TEST(Llmc, MarksTheUpdateThatWasLeftOut) {
  const Reading reading = read_fixture("llmc", "llmc/stdout.log");
  EXPECT_FALSE(step(reading, 2).skipped);
  EXPECT_TRUE(step(reading, 3).skipped);
  EXPECT_TRUE(is_nan(step(reading, 3).loss));
  EXPECT_EQ(count(reading, EventKind::skipped_update), 1);
  EXPECT_EQ(count(reading, EventKind::evaluation), 3);
}

TEST(Llmc, ReadsThePythonTrainer) {
  const Reading reading = read_fixture("llmc", "llmc/python_trainer.log");
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_DOUBLE_EQ(*step(reading, 2).time_seconds, 0.0215);
  EXPECT_DOUBLE_EQ(*step(reading, 2).loss, 4.06);
  EXPECT_FALSE(step(reading, 2).mfu.known());
}

TEST(LlmcMain, CountsFromZeroAndHasNoTimes) {
  const Reading reading = read_fixture("llmc_main", "llmc_main/main.log");
  ASSERT_EQ(reading.log.steps.size(), 3u);
  EXPECT_EQ(reading.log.steps.front().step, 0);
  EXPECT_EQ(step(reading, 1).time_source, TimeSource::none);
  EXPECT_DOUBLE_EQ(*step(reading, 1).grad_norm, 15.24);
  EXPECT_TRUE(is_nan(step(reading, 2).loss));
  ASSERT_EQ(count(reading, EventKind::evaluation), 3);
  EXPECT_FALSE(reading.log.events[1].value.known());  // HellaSwag is no loss
  EXPECT_DOUBLE_EQ(*reading.log.events[2].value, 10.8001);
}

TEST(LlmcMain, HasNoStepsWhereOnlyEvaluationsAre) {
  const Reading reading = read_fixture("llmc_main", "llmc_main/only_evaluations.log");
  EXPECT_TRUE(reading.log.steps.empty());
  EXPECT_EQ(reading.log.records, 0);
  EXPECT_EQ(count(reading, EventKind::evaluation), 3);
  EXPECT_EQ(reading.log.events[1].step, 250);
  EXPECT_GT(reading.confidence, 0.9);
}

TEST(ModdedNanogpt, DerivesTimesFromAClockThatIsSetBack) {
  const Reading reading = read_fixture("modded_nanogpt", "modded_nanogpt/timer_reset.log");
  ASSERT_EQ(reading.log.steps.size(), 6u);  // the source above holds none
  EXPECT_NEAR(*step(reading, 2).time_seconds, 0.150, 1e-9);
  EXPECT_EQ(step(reading, 2).time_source, TimeSource::from_timestamps);
  EXPECT_NEAR(*step(reading, 10).time_seconds, 0.150, 1e-9);
  EXPECT_EQ(step(reading, 10).mean_of, 8);
  EXPECT_EQ(step(reading, 11).time_source, TimeSource::none);  // set back
  EXPECT_NEAR(*step(reading, 13).time_seconds, 0.150, 1e-9);   // from the evaluation's reading, not the step's
  EXPECT_NEAR(*step(reading, 13).time_low, 0.149, 1e-9);
  EXPECT_EQ(count(reading, EventKind::evaluation), 3);
  EXPECT_NEAR(memory(reading, -1, MemoryKind::peak_allocated), 31563 * k_mib / 1e9, 1e-9);
  EXPECT_FALSE(reading.log.facts.gpu_count.has_value());  // the machine's are listed, not the run's
}

}  // namespace
}  // namespace tprimat::logs
