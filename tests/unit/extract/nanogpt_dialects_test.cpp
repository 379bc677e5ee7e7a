// nanoGPT's console and LLaMA-Factory's trainer_log.jsonl.
#include "extract/read_log.h"
#include "extract/to_result.h"
#include "unit/extract/dialect_reading.h"

namespace tprimat::logs {
namespace {

TEST(NanoGpt, ReadsSingleIterations) {
  const Reading reading = read_fixture("nanogpt", "nanogpt/character.log");
  ASSERT_EQ(reading.log.steps.size(), 11u);
  EXPECT_DOUBLE_EQ(*step(reading, 2).time_seconds, 24.10e-3);  // of one iteration, though two lie between the records
  EXPECT_NEAR(*step(reading, 2).time_high - *step(reading, 2).time_low, 1e-5, 1e-12);
  EXPECT_EQ(step(reading, 2).mean_of, 1);
  EXPECT_DOUBLE_EQ(*step(reading, 2).tokens, 16384);
  EXPECT_FALSE(step(reading, 2).mfu.known());  // -100 %: not measured yet
  EXPECT_DOUBLE_EQ(*step(reading, 6).mfu, 0.1812);
  EXPECT_TRUE(is_nan(step(reading, 12).loss));
  EXPECT_FALSE(step(reading, 2).learning_rate.known());
}

TEST(NanoGpt, ReadsItsHeader) {
  const Reading reading = read_fixture("nanogpt", "nanogpt/character.log");
  const LoggedFacts& facts = reading.log.facts;
  EXPECT_EQ(facts.sequence_length, 256);
  EXPECT_EQ(facts.micro_batch_size, 64);
  EXPECT_EQ(facts.global_batch_size, 64);
  EXPECT_EQ(facts.max_steps, 21);  // iterations 0 to 20
  EXPECT_EQ(facts.parameters, 10'740'096 + 4'992);
  EXPECT_EQ(facts.precision, Precision::bf16);
  EXPECT_FALSE(facts.gpu_count.has_value());
  EXPECT_EQ(reading.log.settings.at("dataset"), "letters");
  EXPECT_EQ(reading.log.settings.at("learning_rate"), "1e-3");
  EXPECT_FALSE(reading.log.settings.contains("warmup_iters"));                 // an expression
  EXPECT_FALSE(reading.log.settings.contains("gradient_accumulation_steps"));  // it is summed over the processes
}

TEST(NanoGpt, TheCommandLineOverridesTheFile) {
  const Reading reading = read_fixture("nanogpt", "nanogpt/overridden.log");
  EXPECT_EQ(reading.log.facts.sequence_length, 512);
  EXPECT_EQ(reading.log.facts.micro_batch_size, 6);
  EXPECT_EQ(reading.log.facts.global_batch_size, 24);
  EXPECT_EQ(reading.log.facts.precision, Precision::bf16);
  EXPECT_EQ(reading.log.settings.at("block_size"), "512");
  EXPECT_EQ(reading.log.settings.at("out_dir"), "out-letters");
}

TEST(NanoGpt, ReadsAFileThatImports) {
  std::string text = fixture("nanogpt/overridden.log");
  for (size_t at; (at = text.find("Overriding: ")) != std::string::npos;) text.erase(at, text.find('\n', at) + 1 - at);
  const Reading reading = read_text(find_dialect("nanogpt"), text);
  EXPECT_EQ(reading.log.facts.sequence_length, 1024);
  EXPECT_EQ(reading.log.facts.micro_batch_size, 12);
  EXPECT_EQ(reading.log.facts.max_steps, 21);
  EXPECT_EQ(reading.log.facts.precision, Precision::fp16);
}

TEST(NanoGpt, LabelsOnlyIterationsThatEvaluate) {
  const Reading small = read_fixture("nanogpt", "nanogpt/character.log");
  EXPECT_TRUE(step(small, 8).with_evaluation);
  EXPECT_TRUE(step(small, 8).with_checkpoint);
  EXPECT_FALSE(step(small, 10).with_evaluation);
  EXPECT_EQ(count(small, EventKind::evaluation), 3);
  EXPECT_EQ(count(small, EventKind::checkpoint), 2);
  const ReadLog resumed = read_log_text(fixture("nanogpt/resumed.log"), {});
  for (const ExtractedStep& each : resumed.log.steps) {
    EXPECT_FALSE(each.with_evaluation || each.with_checkpoint) << each.step;  // that of step 615 is in no record
  }
}

TEST(NanoGpt, BeginsAnAttemptWhereItResumes) {
  const ReadLog resumed = read_log_text(fixture("nanogpt/resumed.log"), {});
  ASSERT_EQ(resumed.log.steps.size(), 5u);
  EXPECT_EQ(resumed.log.steps[2].step, 620);
  EXPECT_EQ(resumed.log.steps[3].step, 620);  // again, after the checkpoint of iteration 615
  EXPECT_EQ(resumed.log.steps[3].attempt, 1);
  EXPECT_EQ(resumed.attempts, 2);
}

TEST(NanoGpt, CompletesAtItsLastRecord) {
  const std::string text = fixture("nanogpt/character.log");
  const auto status_with = [&](const std::string& last) {
    std::string changed = text;
    changed.replace(changed.find("max_iters = 20"), 14, "max_iters = " + last);
    return make_result(read_log_text(changed, {}), "a.log", {}).status;
  };
  EXPECT_EQ(status_with("20"), RunStatus::complete);
  EXPECT_EQ(status_with("21"), RunStatus::complete);  // iteration 21 is not printed
  EXPECT_EQ(status_with("22"), RunStatus::invalid);   // 22 would be
}

TEST(NanoGpt, IsNotCertainWithoutItsMarks) {
  const Dialect& dialect = find_dialect("nanogpt");
  EXPECT_EQ(read_text(dialect, "iter 10: loss 3.1, time 20.00ms\n").confidence, 0.6);
  EXPECT_EQ(read_text(dialect, "iter 10: loss 3.1, time 20.00ms, mfu 30.00%\n").confidence, 0.95);
  EXPECT_EQ(read_text(dialect, "iter 10: loss 3.1, iter time: 20.00ms, time 3\n").confidence, 0);
}

TEST(LlamaFactory, DerivesTimesFromWholeSeconds) {
  const Reading reading = read_fixture("llama_factory", "llama_factory/trainer_log.jsonl");
  ASSERT_EQ(reading.log.steps.size(), 5u);  // neither the evaluation nor the last line, which has no loss
  EXPECT_EQ(step(reading, 10).time_source, TimeSource::none);  // its first step is not known
  EXPECT_EQ(step(reading, 20).time_source, TimeSource::from_timestamps);
  EXPECT_DOUBLE_EQ(*step(reading, 20).time_seconds, 2.0);
  EXPECT_DOUBLE_EQ(*step(reading, 20).time_low, 1.9);
  EXPECT_DOUBLE_EQ(*step(reading, 20).time_high, 2.1);
  EXPECT_EQ(step(reading, 20).mean_of, 10);
  EXPECT_TRUE(is_nan(step(reading, 30).loss));
  EXPECT_DOUBLE_EQ(*step(reading, 50).time_seconds, (86400 + 130 - 110) / 10.0);  // "1 day, 0:02:10"
  EXPECT_DOUBLE_EQ(*step(reading, 20).learning_rate, 4.1e-05);
  EXPECT_DOUBLE_EQ(*step(reading, 20).tokens_seen, 131072);
  EXPECT_FALSE(step(reading, 20).tokens_per_second.known());  // its throughput is a mean since the start
  EXPECT_DOUBLE_EQ(memory(reading, -1, MemoryKind::peak_allocated), 20.5 * k_gib / 1e9);
  EXPECT_EQ(count(reading, EventKind::evaluation), 1);
  EXPECT_EQ(reading.log.facts.max_steps, 55);
}

TEST(LlamaFactory, KnowsAStartByItsClock) {
  const Reading reading = read_fixture("llama_factory", "llama_factory/preferences_twice.jsonl");
  ASSERT_EQ(reading.log.steps.size(), 4u);
  EXPECT_EQ(step(reading, 10).attempt, 0);
  EXPECT_EQ(step(reading, 15).attempt, 1);
  EXPECT_EQ(step(reading, 15).time_source, TimeSource::none);  // 5 steps or fewer in 11 s
  EXPECT_DOUBLE_EQ(*step(reading, 20).time_seconds, 2.0);
  EXPECT_TRUE(has_note(reading, "preferences"));
}

TEST(LlamaFactory, IgnoresWhatIsNoRecord) {
  const Dialect& dialect = find_dialect("llama_factory");
  for (const char* line :
       {R"({"current_steps": -1, "loss": 1})", R"({"current_steps": 1.5, "loss": 1})", R"(["current_steps"])",
        R"({"current_steps": "1", "loss": 1})", R"({"current_steps": 1e99, "loss": 1})", R"({"current_steps": 3)"})
    EXPECT_TRUE(read_text(dialect, line).log.steps.empty()) << line;
  const Reading odd = read_text(dialect, R"({"current_steps": 1, "loss": 1, "elapsed_time": "1 day"})");
  ASSERT_EQ(odd.log.steps.size(), 1u);
  EXPECT_EQ(odd.log.steps[0].time_source, TimeSource::none);
}

}  // namespace
}  // namespace tprimat::logs
