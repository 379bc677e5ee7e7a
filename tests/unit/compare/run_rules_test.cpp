#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compare/audit.h"
#include "unit/compare/audited_runs.h"

namespace tprimat::results {
namespace {

TelemetrySummary throttled_device(double share) {
  TelemetrySummary device;
  device.source = "nvml";
  device.throttle_shares = {{"clock_set", 1.0}, {"power", share}};
  return device;
}

struct RunCase {
  const char* code;
  Severity severity;
  void (*change)(RunResult& run);
};
class RunRules : public ::testing::TestWithParam<RunCase> {};
TEST_P(RunRules, FindTheFault) {
  LoadedRun run = plain();
  EXPECT_EQ(find_code(audit_contender({"A", "label", {run, run, run}, {}}), GetParam().code), nullptr);
  GetParam().change(run.result);
  const auto findings = audit_contender(participant(run));
  const Finding* finding = find_code(findings, GetParam().code);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, GetParam().severity);
}
using enum Severity;
INSTANTIATE_TEST_SUITE_P(
    Cases, RunRules,
    ::testing::Values(RunCase{"status", error, [](RunResult& r) { r.status = RunStatus::interrupted; }},
                      RunCase{"impossible", error,
                              [](RunResult& r) {
                                r.derived.mfu = Estimate{1.5, {}, {}};
                              }},
                      RunCase{"effective_work", error,
                              [](RunResult& r) {
                                r.config_audit.push_back({"global_batch_size", "64", "32"});
                              }},
                      RunCase{"effective_settings", warning,
                              [](RunResult& r) {
                                r.config_audit.push_back({"attention", "flash", "eager"});
                              }},
                      RunCase{"adapted_settings", warning,
                              [](RunResult& r) {
                                r.config_audit.push_back({"precision", "fp8", "bf16", "it does not train in fp8"});
                              }},
                      RunCase{"device_counts", error, [](RunResult& r) { r.training_config.num_gpus = 1; }},
                      RunCase{"model_missing", error, [](RunResult& r) { r.model_info.name.clear(); }},
                      RunCase{"rate_missing", error, [](RunResult& r) { r.derived.tokens_per_second_per_gpu.reset(); }},
                      RunCase{"loss_collapse", warning,
                              [](RunResult& r) {
                                for (size_t i = 30; i < r.loss_values.size(); ++i) r.loss_values[i] = 0.001;
                              }},
                      RunCase{"nothing_learned", warning,
                              [](RunResult& r) {
                                r.loss_values.resize(60);
                                for (size_t i = 0; i < 60; ++i) r.loss_values[i] = 11.8 - 0.01 * (i % 4);
                              }},
                      RunCase{"loss_divergence", warning,
                              [](RunResult& r) {
                                for (size_t i = 40; i < r.loss_values.size(); ++i) r.loss_values[i] += 4;
                              }},
                      RunCase{"throttled", warning, [](RunResult& r) { r.telemetry = {throttled_device(0.2)}; }},
                      RunCase{"layout_contradiction", error,
                              [](RunResult& r) {
                                r.contradictions = {{"devices", "8", "16", Contradiction::Kind::layout}};
                              }},
                      RunCase{"disturbed", warning, [](RunResult& r) { r.telemetry = {machine_with_others(1.0)}; }},
                      RunCase{"never_steady", warning, [](RunResult& r) { r.warmup.steady = false; }},
                      RunCase{"outliers", warning,
                              [](RunResult& r) {
                                r.statistics->outliers = {10, 20, 30, 40};
                              }},
                      RunCase{"outlier", note, [](RunResult& r) { r.statistics->outliers = {10}; }},
                      RunCase{"few_steps", warning, [](RunResult& r) { r.statistics->count = 19; }},
                      RunCase{"few_runs", warning, [](RunResult&) {}},
                      RunCase{"assumed_facts", warning,
                              [](RunResult& r) {
                                r.source.assumed = {{"training_config.num_gpus", "8", "config.yaml", {}}};
                              }},
                      RunCase{"assumed_details", note,
                              [](RunResult& r) {
                                r.source.assumed = {{"platform", "amd", "the log's path", {}}};
                              }},
                      RunCase{"precision_missing", warning, [](RunResult& r) { r.precision.reset(); }},
                      RunCase{"loss_missing", warning, [](RunResult& r) { r.loss_values.clear(); }},
                      RunCase{"framework_missing", note, [](RunResult& r) { r.framework.reset(); }},
                      RunCase{"foreign_device", error, [](RunResult& r) { r.platform = Platform::amd; }},
                      RunCase{"foreign_device", error, [](RunResult& r) { r.gpu_info.software_stack = "rocm"; }},
                      RunCase{"other_peak", warning,
                              [](RunResult& r) {
                                r.derived.peak = PeakInfo{"config:mine", 500e12, ""};
                              }},
                      RunCase{"unheard_of_mfu", warning,
                              [](RunResult& r) {
                                r.derived.peak = PeakInfo{"catalogue:H100-SXM-80GB:bf16", 989e12, ""};
                                r.derived.mfu = Estimate{0.89, {}, {}};
                              }},
                      RunCase{"impossible", error,
                              [](RunResult& r) {
                                r.derived.tokens_per_second_per_gpu = Estimate{4e9, {}, {}};
                              }},
                      RunCase{"impossible_memory", warning,
                              [](RunResult& r) { r.memory_metrics.peak_memory_allocated_gb = 200; }},
                      RunCase{"impossible_memory", warning,
                              [](RunResult& r) { r.memory_metrics.peak_memory_reserved_gb = 30; }},
                      RunCase{"impossible_loss", warning,
                              [](RunResult& r) {
                                for (double& loss : r.loss_values) loss = 7;
                              }},
                      RunCase{"impossible_loss", warning, [](RunResult& r) { r.loss_values[30] = -0.1; }},
                      RunCase{"drift", warning,
                              [](RunResult& r) {
                                for (size_t i = 0; i < r.step_times.size(); ++i)
                                  r.step_times[i] *= 1 + 0.001 * static_cast<double>(i);
                              }},
                      RunCase{"constant_times", warning,
                              [](RunResult& r) {
                                for (double& seconds : r.step_times) seconds = 1.5;
                              }},
                      RunCase{"sequence_length_missing", warning,
                              [](RunResult& r) { r.training_config.sequence_length.reset(); }},
                      RunCase{"rounded", note,
                              [](RunResult& r) {
                                r.steps.emplace();
                                r.steps->time_low = std::vector<double>(60, 0.95);
                                r.steps->time_high = std::vector<double>(60, 1.05);
                              }},
                      RunCase{"device_missing", note, [](RunResult& r) { r.gpu_info.device_name.clear(); }}),
    [](const auto& each) { return fmt::format("{}_{}", each.param.code, each.index); });

TEST(Audit, RepetitionsThatDifferMuchAreSaid) {
  Contender contender = participant(plain());
  contender.runs.push_back(sample_run("a_r2.json", Platform::nvd, Framework::nemo, 1.2));
  EXPECT_NE(find_code(audit_contender(contender), "runs_disagree"), nullptr);
}

TEST(Audit, NamesWhatTheRateLacksAndNothingElse) {
  LoadedRun run = plain();
  run.result.training_config.sequence_length.reset();
  const auto findings = audit_contender(participant(again(run)));
  ASSERT_NE(find_code(findings, "rate_missing"), nullptr);
  EXPECT_EQ(find_code(findings, "rate_missing")->sentence, "there is no rate to compare: not known: sequence length");
}

TEST(Audit, ATrainerThatIsNoneOfOursIsKnownByItsLog) {
  LoadedRun run = plain();
  run.result.framework.reset();
  run.result.source.format = "torchtitan";
  EXPECT_EQ(find_code(audit_contender(participant(run)), "framework_missing"), nullptr);
}

TEST(Audit, EveryRunOfAParticipantIsLookedAt) {
  Contender contender = participant(plain());
  contender.runs.push_back(other());
  for (size_t i = 30; i < 60; ++i) contender.runs.back().result.loss_values[i] = 0.001;
  EXPECT_NE(find_code(audit_contender(contender), "loss_collapse"), nullptr);
}

TEST(Audit, AMeasuredPeakIsHeldAgainstTheCatalogue) {
  const auto finding = [](double peak, double mfu, const char* code) {
    LoadedRun run = plain();
    run.result.derived.peak = PeakInfo{"measured:bf16", peak, ""};
    run.result.derived.mfu = Estimate{mfu, {}, {}};
    return find_code(audit_contender(participant(run)), code) != nullptr;
  };
  EXPECT_TRUE(finding(450e12, 0.859, "other_peak")) << "of 989";
  EXPECT_TRUE(finding(1100e12, 0.3, "other_peak"));
  EXPECT_FALSE(finding(700e12, 0.6, "other_peak"));
  EXPECT_TRUE(finding(900e12, 0.9, "unheard_of_mfu"));
  EXPECT_FALSE(finding(700e12, 0.9, "unheard_of_mfu")) << "0.64 of the datasheet's";
}

}  // namespace
}  // namespace tprimat::results
