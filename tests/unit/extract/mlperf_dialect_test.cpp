#include "example_data.h"
#include "extract/read_log.h"
#include "extract/to_result.h"
#include "result/metrics.h"
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

RunResult result_of(const std::string& text) { return make_result(read_log_text(text, {}), "run.log", {}); }

// `from` becomes `to`, which must occur.
std::string changed(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Mlperf, IsCompleteWithoutStepsIfRunStopStatesSuccess) {
  const RunResult result = result_of(fixture("mlperf/no_steps.log"));
  EXPECT_EQ(result.status, RunStatus::complete) << result.status_reason.value_or("");
  EXPECT_TRUE(result.step_times.empty());
  EXPECT_FALSE(result.statistics.has_value());
  EXPECT_FALSE(result.derived.tokens_per_second.has_value());
  ASSERT_TRUE(result.time_to_train.has_value());
  const TimeToTrain& time = *result.time_to_train;
  EXPECT_EQ(time.benchmark, "bert");
  EXPECT_EQ(time.division, "closed");
  EXPECT_EQ(time.seconds, 120.0);
  EXPECT_EQ(time.samples, 299008);  // epoch_num counts samples
  EXPECT_EQ(time.eval_samples, 10240);
  EXPECT_EQ(time.reached_quality, 0.7205);
  EXPECT_EQ(time.target_quality, 0.72);
  EXPECT_EQ(time.target_source, "rules");
  EXPECT_EQ(time.higher_is_better, true);
  EXPECT_FALSE(time.samples_per_second.has_value());  // the log has no blocks
}

TEST(Mlperf, IsNotCompleteIfAbortedOrCut) {
  const RunResult aborted = result_of(fixture("mlperf/aborted.log"));
  EXPECT_EQ(aborted.status, RunStatus::failed);
  EXPECT_EQ(aborted.status_reason, "the target was not reached: run_stop with status aborted");
  EXPECT_FALSE(find_metric("time_to_train")->read(aborted).has_value());
  const RunResult cut = result_of(fixture("mlperf/no_stop.log"));
  EXPECT_EQ(cut.status, RunStatus::invalid);
  EXPECT_EQ(cut.status_reason, "the log ends before run_stop");
  EXPECT_FALSE(cut.time_to_train->seconds.has_value());
}

TEST(Mlperf, TakesTheTargetFromTheLogAndTheRateFromBlocks) {
  const TimeToTrain time = *result_of(fixture("mlperf/blocks.log")).time_to_train;
  EXPECT_EQ(time.target_quality, 0.93);
  EXPECT_EQ(time.target_source, "log");
  EXPECT_EQ(time.seconds, 170.0);
  EXPECT_EQ(time.samples, 240);
  EXPECT_DOUBLE_EQ(*time.samples_per_second, 240 / 150.0);  // 100 s and 50 s of training
}

TEST(Mlperf, HasNoRateIfABlockIsOpenOrHoldsAnEvaluation) {
  const std::string text = fixture("mlperf/blocks.log");
  const auto rate = [](const std::string& log) { return result_of(log).time_to_train->samples_per_second; };
  EXPECT_FALSE(rate(changed(text, "\"block_stop\"", "\"other\"")).has_value());
  EXPECT_FALSE(rate(changed(text, "\"samples_count\": 0", "\"samples_count\": 8")).has_value());  // it began later
}

bool warns_of(const RunResult& result, const std::string& text) {
  return std::ranges::any_of(result.warnings, [&](const std::string& each) { return contains(each, text); });
}

TEST(Mlperf, SaysWhereSuccessMissesTheTarget) {
  const RunResult result = result_of(changed(fixture("mlperf/no_steps.log"), "0.7205", "0.7105"));
  EXPECT_EQ(result.status, RunStatus::complete);
  EXPECT_TRUE(warns_of(result, "misses"));
  EXPECT_FALSE(warns_of(result_of(fixture("mlperf/no_steps.log")), "misses"));
}

TEST(Mlperf, SaysWhereSuccessHasNoFiniteEvaluation) {
  std::string text = changed(fixture("mlperf/no_steps.log"), "\"value\": 0.7205", "\"value\": NaN");
  text = changed(text, "\"value\": 0.5,", "\"value\": NaN,");
  const RunResult result = result_of(text);
  EXPECT_FALSE(result.time_to_train->reached_quality.has_value());
  EXPECT_TRUE(warns_of(result, "no eval_accuracy is a finite number"));
}

TEST(Mlperf, SaysWhereATargetIsNotThatOfTheClosedDivision) {
  const std::string text = fixture("mlperf/blocks.log");
  EXPECT_TRUE(warns_of(result_of(changed(text, "\"open\"", "\"closed\"")), "the closed division demands 0.925"));
  EXPECT_FALSE(warns_of(result_of(text), "demands"));
  const std::string same = changed(changed(text, "\"open\"", "\"closed\""), "\"value\": 0.93,", "\"value\": 0.925,");
  EXPECT_FALSE(warns_of(result_of(same), "demands"));
}

TEST(Mlperf, ARunAfterAnotherStatesItsOwnFacts) {
  const RunResult result = result_of(fixture("mlperf/two_runs.log"));
  EXPECT_EQ(result.status, RunStatus::complete) << result.status_reason.value_or("");  // the first one was aborted
  EXPECT_EQ(result.model_info.name, "llama2_70b_lora");
  EXPECT_EQ(result.training_config.global_batch_size, 8);
  EXPECT_FALSE(result.training_config.sequence_length.has_value());  // only the first run states one
  EXPECT_EQ(result.training_config.num_gpus, 2);                     // of its own init_start lines
  const TimeToTrain& time = *result.time_to_train;
  EXPECT_EQ(time.benchmark, "llama2_70b_lora");
  EXPECT_EQ(time.target_quality, 0.925);
  EXPECT_EQ(time.eval_samples, 173);
  EXPECT_EQ(time.seconds, 600.0);
  EXPECT_TRUE(warns_of(result, "2 runs"));
}

TEST(Mlperf, ARunThatIsOnlyAnnouncedChangesNothing) {
  const std::string text = fixture("mlperf/two_runs.log");
  const std::string cut = text.substr(0, text.find(":::MLLOG", text.rfind("init_start")));
  const RunResult result = result_of(cut);
  EXPECT_EQ(result.time_to_train->benchmark, "bert");
  EXPECT_EQ(result.time_to_train->seconds, 120.0);
  EXPECT_EQ(result.training_config.global_batch_size, 1024);
  EXPECT_EQ(result.training_config.num_gpus, 8);
}

TEST(Mlperf, TheLogsOfRanksInOneFileStateOneRun) {
  const std::string first = changed(fixture("mlperf/no_steps.log"), "box_8xMI355X", "box");
  const std::string second = first.substr(first.find(":::MLLOG", first.find("max_sequence_length")));
  const RunResult result = result_of(first + second);
  EXPECT_EQ(result.training_config.num_gpus, 2);
  EXPECT_EQ(result.training_config.global_batch_size, 1024);
  EXPECT_EQ(result.time_to_train->benchmark, "bert");
}

TEST(Mlperf, ADigitInsideOfAWordIsNoCount) {
  const auto count_in = [](const std::string& platform) {
    return read_text(find_dialect("mlperf"), changed(fixture("mlperf/no_steps.log"), "box_8xMI355X", platform))
        .log.facts.gpu_count;
  };
  EXPECT_FALSE(count_in("G593-SD1H100").has_value());
  EXPECT_FALSE(count_in("G593-SD1xH100").has_value());
  EXPECT_EQ(count_in("box_8xH100"), 8);
  EXPECT_EQ(count_in("box-8H100"), 8);
  EXPECT_EQ(count_in("2xXE9680x8H100"), 16);
}

TEST(Mlperf, HasNoTimeOfATrainingThatWasResumed) {
  const std::string text = fixture("mlperf/no_steps.log");
  const size_t start = text.find(":::MLLOG", text.find("init_stop"));
  const std::string line = text.substr(start, text.find('\n', start) + 1 - start);
  ASSERT_TRUE(contains(line, "run_start"));
  const std::string again = changed(line, "1700000001000", "1700000091000");
  EXPECT_EQ(result_of(text.substr(0, start) + line + text.substr(start)).time_to_train->seconds, 120.0);  // a rank
  std::string resumed = text;
  resumed.insert(text.find(":::MLLOG", text.find("eval_accuracy")), again);
  EXPECT_FALSE(result_of(resumed).time_to_train->seconds.has_value());
}

TEST(Mlperf, WithoutRunStartAndStopHasNoTimeToTrain) {
  EXPECT_FALSE(result_of(fixture("mlperf/tokens.log")).time_to_train.has_value());
  EXPECT_FALSE(result_of("").time_to_train.has_value());
}

// Official submissions: what their own run_start and run_stop state.
struct Submission {
  const char* file;
  double seconds;
  int64_t samples;
  double target, reached;
};
TEST(Mlperf, ReadsOfficialSubmissions) {
  const Submission submissions[] = {
      {"v3.0_NVIDIA_dgxh100_n64_gpt3_result_0.txt", 3857.305, 589824, 2.69, 2.6886},
      {"v5.0_AMD_MI300X_llama2_70b_lora_result_0.txt", 1695.611, 3072, 0.925, 0.92207},
      {"v5.0_NVIDIA_eos-dfw_n64_llama31_405b_result_0.txt", 13837.001, 276480, 5.6, 5.586},
      {"v5.0_tinycorp_8xMI300X_bert_result_0.txt", 6658.465, 3289088, 0.72, 0.72011},
      {"v5.1_Dell_8xB200_llama2_70b_lora_result_0.txt", 563.234, 3072, 0.925, 0.92309},
      {"v5.1_Krai_2x8H200_llama2_70b_lora_result_1.txt", 626.381, 2688, 0.925, 0.92472}};
  for (const Submission& each : submissions) {
    const std::string path = std::string(TPRIMAT_SHARED_DATA) + "/logs/mlperf/" + each.file;
    SKIP_WITHOUT_EXAMPLE_DATA(path);
    const RunResult result = make_result(read_log(path, {}), path, {});
    EXPECT_EQ(result.status, RunStatus::complete) << each.file << ": " << result.status_reason.value_or("");
    ASSERT_TRUE(result.time_to_train.has_value()) << each.file;
    EXPECT_NEAR(result.time_to_train->seconds.value_or(0), each.seconds, 1e-3) << each.file;
    EXPECT_EQ(result.time_to_train->samples, each.samples) << each.file;
    EXPECT_EQ(result.time_to_train->target_quality, each.target) << each.file;
    EXPECT_NEAR(result.time_to_train->reached_quality.value_or(0), each.reached, 5e-4) << each.file;
  }
}

}  // namespace
}  // namespace tprimat::logs
