#include <gtest/gtest.h>

#include <map>
#include <string>

#include "compare/audit.h"
#include "unit/compare/audited_runs.h"

namespace tprimat::results {
namespace {

using Printed = std::map<std::string, std::string>;

// One change to the subject, and the finding that it must bring.
struct PairCase {
  const char* code;
  Severity severity;
  void (*change)(RunResult& subject);
};
class PairRules : public ::testing::TestWithParam<PairCase> {};
TEST_P(PairRules, FindTheDifference) {
  LoadedRun subject = plain();
  GetParam().change(subject.result);
  LoadedRun reference = plain();
  reference.result.training_config.recompute = "none";
  reference.result.gpu_info.pytorch_version = "2.8.0";
  reference.result.parallelism_config.zero_stage = 1;
  reference.result.effective_config = Printed{{"dataset.packing", "false"}, {"mock_data", "false"}};
  const auto findings = audit_pair(participant(reference), participant(subject));
  const Finding* finding = find_code(findings, GetParam().code);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, GetParam().severity);
}
using enum Severity;
INSTANTIATE_TEST_SUITE_P(
    Cases, PairRules,
    ::testing::Values(
        PairCase{"model_shape", error, [](RunResult& r) { r.model_info.shape->num_layers = 5; }},
        PairCase{"sequence_length", error, [](RunResult& r) { r.training_config.sequence_length = 8192; }},
        PairCase{"precision", error, [](RunResult& r) { r.precision = Precision::fp8; }},
        PairCase{"learning_rate", error,
                 [](RunResult& r) {
                   for (double& rate : r.learning_rates) rate *= 0.5;
                 }},
        PairCase{"loss", error,
                 [](RunResult& r) {
                   for (double& loss : r.loss_values) loss *= 0.5;
                 }},
        PairCase{"steps", warning, [](RunResult& r) { r.training_config.max_steps = 61; }},
        PairCase{"device_count", warning, [](RunResult& r) { r.training_config.num_gpus = 16; }},
        PairCase{"batch", note, [](RunResult& r) { r.training_config.global_batch_size = 128; }},
        PairCase{"hardware_and_software", warning,
                 [](RunResult& r) {
                   r.gpu_info.device_name = "NVIDIA A100-SXM4-80GB";
                   r.framework_version = "2.1";
                 }},
        PairCase{"versions", note, [](RunResult& r) { r.framework_version = "2.1"; }},
        PairCase{"software", note, [](RunResult& r) { r.gpu_info.pytorch_version = "2.9.0"; }},
        PairCase{"model_details", warning, [](RunResult& r) { r.model_info.shape->norm = NormKind::layer; }},
        PairCase{"recompute", warning, [](RunResult& r) { r.training_config.recompute = "full"; }},
        PairCase{"data_settings", error,
                 [](RunResult& r) {
                   r.effective_config = Printed{{"packing", "True"}};
                 }},
        PairCase{"synthetic_data", warning,
                 [](RunResult& r) {
                   r.effective_config = Printed{{"mock_data", "True"}};
                 }},
        PairCase{"warmup", warning,
                 [](RunResult& r) {
                   r.warmup = {20, WarmupMethod::fixed, "", true};
                 }},
        PairCase{"start", note, [](RunResult& r) { r.training_config.loaded_step = 100; }},
        PairCase{"tuning", note, [](RunResult& r) { r.parallelism_config.zero_stage = 3; }},
        PairCase{"memory_meaning", warning,
                 [](RunResult& r) {
                   r.memory_metrics = {};
                   r.memory_metrics.peak_device_used_gb = 70;
                 }}),
    [](const auto& each) { return std::string(each.param.code); });

TEST(Audit, AnotherBatchOnlyIsANoteAndLossesAreNotJudged) {
  LoadedRun subject = plain();
  subject.result.training_config.global_batch_size = 128;
  for (double& loss : subject.result.loss_values) loss *= 0.8;
  const auto findings = audit_pair(participant(other()), participant(subject));
  EXPECT_FALSE(has_error(findings));
  EXPECT_NE(find_code(findings, "batch")->sentence.find("rates per token stay comparable"), std::string::npos);
}

RunResult every_tenth(RunResult run, int64_t first) {
  run.steps.emplace();
  run.steps->numbers.emplace();
  for (size_t i = 0; i < run.step_times.size(); ++i)
    run.steps->numbers->push_back(first + 10 * static_cast<int64_t>(i));
  return run;
}

TEST(Audit, LogsOfEveryTenthStepShowOtherRates) {
  LoadedRun reference = plain(), subject = other();
  reference.result = every_tenth(reference.result, 10), subject.result = every_tenth(subject.result, 10);
  EXPECT_TRUE(audit_pair(participant(reference), participant(subject)).empty());
  for (double& rate : subject.result.learning_rates) rate *= 0.1;
  EXPECT_NE(find_code(audit_pair(participant(reference), participant(subject)), "learning_rate"), nullptr);
}

TEST(Audit, RatesWithoutACommonStepLeaveWhatWasAskedFor) {
  LoadedRun reference = plain(), subject = other();
  reference.result = every_tenth(reference.result, 10), subject.result = every_tenth(subject.result, 15);
  reference.result.training_config.learning_rate = 3e-4, subject.result.training_config.learning_rate = 3e-4;
  EXPECT_EQ(find_code(audit_pair(participant(reference), participant(subject)), "learning_rate"), nullptr);
  subject.result.training_config.learning_rate = 3e-5;
  EXPECT_NE(find_code(audit_pair(participant(reference), participant(subject)), "learning_rate"), nullptr);
}

TEST(Audit, LossesThatCannotBeComparedAreSaid) {
  LoadedRun reference = plain(), subject = other();
  subject.result = every_tenth(subject.result, 1'000'000);
  const auto findings = audit_pair(participant(reference), participant(subject));
  const Finding* finding = find_code(findings, "loss_not_compared");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, warning);
  subject.result.loss_values.clear();
  EXPECT_EQ(find_code(audit_pair(participant(reference), participant(subject)), "loss_not_compared"), nullptr);
}

LoadedRun examined(LoadedRun run, const std::vector<std::string>& codes) {
  std::vector<MachineFinding> findings;
  for (const std::string& code : codes)
    findings.push_back({MachineSeverity::warning, "processor", "what " + code, "mend it", code});
  run.result.doctor = make_doctor_report(findings);
  return run;
}

TEST(Audit, FindingsAboutTheMachineOfOneSideAreAWarning) {
  const auto finding_of = [](const LoadedRun& reference, const LoadedRun& subject) {
    const auto findings = audit_pair(participant(reference), participant(subject));
    EXPECT_FALSE(has_error(findings));
    const Finding* found = find_code(findings, "machine_findings");
    return found == nullptr ? std::nullopt : std::optional(*found);
  };
  EXPECT_FALSE(finding_of(examined(plain(), {"governor"}), examined(other(), {"governor"})));
  EXPECT_FALSE(finding_of(examined(plain(), {}), examined(other(), {})));
  EXPECT_FALSE(finding_of(plain(), examined(other(), {"governor"}))) << "what is not known is no difference";
  const auto finding = finding_of(examined(plain(), {"governor"}), examined(other(), {"governor", "busy_processor"}));
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->severity, warning);
  EXPECT_EQ(finding->sentence,
            "tprimat doctor found more before the runs of one side: no such finding against processor: what "
            "busy_processor");
}

TEST(Audit, RepetitionsMayDifferInWhatWasFound) {
  Contender contender = participant(examined(plain(), {}));
  contender.runs.push_back(examined(other(), {"busy_processor"}));
  EXPECT_EQ(find_code(audit_contender(contender), k_runs_differ), nullptr);
}

}  // namespace
}  // namespace tprimat::results
