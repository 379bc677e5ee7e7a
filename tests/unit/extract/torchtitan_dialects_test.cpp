#include "extract/common/setting_names.h"
#include "unit/extract/dialect_reading.h"

namespace tprimat::logs {
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
  EXPECT_TRUE(has_note(reading, "includes start-up"));
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
  LoggedFacts facts = reading.log.facts;
  apply_settings(reading.log.settings, facts);
  EXPECT_EQ(facts.learning_rate, 0.0008);
  EXPECT_FALSE(facts.seed.has_value());  // "None"
  EXPECT_EQ(reading.log.facts.gpu_count, 8);
}

TEST(PrimusTorchtitan, IsSurerThanTorchtitanOfPrimusLogsOnly) {
  const std::string primus = fixture("primus_torchtitan/plain_and_rewritten.log");
  const std::string plain = fixture("torchtitan/fsdp_tp_log_freq_10.log");
  const Dialect &own = find_dialect("primus_torchtitan"), &other = find_dialect("torchtitan");
  EXPECT_GT(read_text(own, primus).confidence, read_text(other, primus).confidence);
  EXPECT_LT(read_text(own, plain).confidence, read_text(other, plain).confidence);
}

}  // namespace
}  // namespace tprimat::logs
