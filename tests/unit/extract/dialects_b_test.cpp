#include "unit/extract/dialect_reading.h"

namespace tprimat {
namespace {

TEST(Torchtitan, DerivesTheTimeFromTheRateOfAllDevices) {
  const Reading reading = read_fixture("torchtitan", "torchtitan/fsdp_tp_log_freq_10.log");
  ASSERT_EQ(reading.log.steps.size(), 3u);
  EXPECT_GT(reading.confidence, 0.9);
  const ExtractedStep& tenth = step(reading, 10);
  EXPECT_EQ(tenth.time_source, TimeSource::from_rate);
  EXPECT_NEAR(*tenth.time_seconds, 16.0 * 4096 / (16384 * 4), 1e-12);  // the rate is of each of 2 x 2 devices
  EXPECT_LT(*tenth.time_low, *tenth.time_seconds);
  EXPECT_GT(*tenth.time_high, *tenth.time_seconds);
  EXPECT_EQ(tenth.mean_of, 9);  // step 1 has a record of its own
  EXPECT_EQ(step(reading, 20).mean_of, 10);
  EXPECT_DOUBLE_EQ(*tenth.tflops_per_gpu, 1145.39);
  EXPECT_NEAR(*tenth.memory_reserved_gb, 44 * k_gib / 1e9, 1e-9);
  EXPECT_TRUE(has_note(reading, "covers start-up"));
}

TEST(Torchtitan, KeepsNanAndLeavesOutWhatIsNotKnown) {
  const Reading reading = read_fixture("torchtitan", "torchtitan/fsdp_tp_log_freq_10.log");
  EXPECT_TRUE(is_nan(step(reading, 20).loss));
  EXPECT_FALSE(step(reading, 20).mfu.known());
}

TEST(Torchtitan, TakesAValidationForNoStep) {
  const Reading reading = read_fixture("torchtitan", "torchtitan/fsdp_tp_log_freq_10.log");
  ASSERT_EQ(count(reading, EventKind::evaluation), 1);
  EXPECT_EQ(reading.log.events[0].step, 10);
  EXPECT_DOUBLE_EQ(*reading.log.events[0].value, 9.61);
  EXPECT_DOUBLE_EQ(*step(reading, 10).loss, 9.5);
}

TEST(Torchtitan, ReadsTheHeader) {
  const LoggedFacts facts = read_fixture("torchtitan", "torchtitan/fsdp_tp_log_freq_10.log").log.facts;
  EXPECT_EQ(facts.gpu_name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(facts.platform, Platform::nvd);
  EXPECT_EQ(facts.gpu_count, 4);  // expert parallelism reuses devices
  EXPECT_EQ(facts.tensor_parallel, 2);
  EXPECT_EQ(facts.data_parallel, 2);
  EXPECT_EQ(facts.parameters, 1235814400);
  EXPECT_EQ(facts.model, "llama3 1B");
  EXPECT_EQ(facts.peak_flops, 9.89e14);
  EXPECT_EQ(facts.warmup_steps, 40);  // adjusted, not the 200 that were asked for
  EXPECT_EQ(facts.framework_version, "0.2.1");
}

TEST(Torchtitan, FallsBackOnTimeStamps) {
  const Reading reading = read_fixture("torchtitan", "torchtitan/wps_2024.log");
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_EQ(reading.log.records, 4);
  EXPECT_EQ(step(reading, 1).time_source, TimeSource::none);
  EXPECT_EQ(step(reading, 2).time_source, TimeSource::from_timestamps);
  EXPECT_NEAR(*step(reading, 2).time_seconds, 2.25, 1e-6);
  EXPECT_DOUBLE_EQ(*step(reading, 2).tokens_per_second_per_gpu, 8192);
  EXPECT_FALSE(step(reading, 2).grad_norm.known());
  EXPECT_EQ(reading.log.facts.gpu_name, "NVIDIA A100-SXM4-40GB");
  EXPECT_NEAR(memory(reading, 1, MemoryKind::peak_reserved), 11.25 * k_gib / 1e9, 1e-9);
}

TEST(PrimusTorchtitan, DividesTheIntervalThatItCallsAnIteration) {
  const Reading reading = read_fixture("primus_torchtitan", "primus_torchtitan/plain_and_rewritten.log");
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_DOUBLE_EQ(*step(reading, 1).time_seconds, 20);
  EXPECT_DOUBLE_EQ(*step(reading, 10).time_seconds, 1);  // 9000 ms over steps 2 to 10
  EXPECT_EQ(step(reading, 10).mean_of, 9);
  EXPECT_DOUBLE_EQ(*step(reading, 10).loss, 9.5);
  EXPECT_DOUBLE_EQ(*step(reading, 10).samples_seen, 160);
  EXPECT_EQ(reading.log.facts.precision, Precision::fp8);
  EXPECT_EQ(reading.log.facts.learning_rate, 0.0008);
  EXPECT_FALSE(reading.log.facts.seed.has_value());  // "None"
  EXPECT_EQ(reading.log.facts.gpu_count, 8);
}

TEST(PrimusTorchtitan, IsSurerThanTorchtitanOfPrimusLogsOnly) {
  const std::string primus = fixture("primus_torchtitan/plain_and_rewritten.log");
  const std::string plain = fixture("torchtitan/fsdp_tp_log_freq_10.log");
  const Dialect &own = find_dialect("primus_torchtitan"), &other = find_dialect("torchtitan");
  EXPECT_GT(read_text(own, primus).confidence, read_text(other, primus).confidence);
  EXPECT_LT(read_text(own, plain).confidence, read_text(other, plain).confidence);
}

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
}  // namespace tprimat
