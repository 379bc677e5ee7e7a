#include "compare/audit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "compare/copies.h"

#include "unit/compare/sample_runs.h"

namespace tprimat {
namespace {

const Finding* find_code(const std::vector<Finding>& findings, const std::string& code) {
  const auto found =
      std::find_if(findings.begin(), findings.end(), [&](const Finding& each) { return each.code == code; });
  return found == findings.end() ? nullptr : &*found;
}

Contender participant(LoadedRun run) { return {"A", "label", {std::move(run)}, {}}; }
LoadedRun plain() {
  LoadedRun run = sample_run("a.json", Platform::nvd, Framework::nemo, 1.0);
  run.result.framework_version = "2.0";
  return run;
}

using Printed = std::map<std::string, std::string>;

// The same work once more, with noise of its own.
LoadedRun other() {
  LoadedRun run = noisy_run("b.json", Platform::nvd, Framework::nemo, 1.0, 1);
  run.result.framework_version = "2.0";
  return run;
}

TEST(Audit, EqualRunsHaveNoErrors) {
  EXPECT_FALSE(has_error(audit_contender(participant(plain()))));
  EXPECT_TRUE(audit_pair(participant(plain()), participant(other())).empty());
}

TEST(Audit, ACopyUnderAnotherNameIsNoSecondRun) {
  LoadedRun copy = plain();
  copy.path = "b.json";
  copy.result.gpu_info.device_name = "NVIDIA H200";
  copy.result.timestamp = "2026-04-01T00:00:00Z";
  const Finding* finding = nullptr;
  const auto findings = audit_pair(participant(plain()), participant(copy));
  finding = find_code(findings, "same_measurement");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::error);
  EXPECT_NE(finding->sentence.find("a.json against b.json"), std::string::npos);
}

TEST(Audit, OneChangedLossMakesNoSecondRun) {
  LoadedRun copy = plain();
  copy.path = "b.json";
  copy.result.loss_values[7] += 1e-6;
  EXPECT_NE(find_code(audit_pair(participant(plain()), participant(copy)), "same_measurement"), nullptr);
}

TEST(Audit, StepTimesThatAreAlikeShowNoCopy) {
  const auto constant = [](const char* path) {
    LoadedRun run = plain();
    run.path = path;
    run.result.step_times.assign(run.result.step_times.size(), 0.5);
    run.result.loss_values.clear();
    return again(run);
  };
  EXPECT_EQ(find_code(audit_pair(participant(constant("a.json")), participant(constant("b.json"))), "same_measurement"),
            nullptr);
}

TEST(Audit, ManyRepetitionsAreSearchedForCopiesInNoTime) {
  constexpr size_t k_runs = 2000, k_steps = 200;
  const auto repeated = [](double step_time) {
    Contender contender = participant(plain());
    contender.runs.clear();
    for (size_t i = 0; i < k_runs; ++i) {
      LoadedRun run{std::to_string(i), {}};
      for (size_t k = 0; k < k_steps; ++k)
        run.result.step_times.push_back(step_time + 1e-3 * static_cast<double>(k) + 1e-6 * static_cast<double>(i));
      contender.runs.push_back(std::move(run));
    }
    return contender;
  };
  Contender a = repeated(1), b = repeated(2);
  b.runs[70].result.step_times = a.runs[30].result.step_times;
  const auto begin = std::chrono::steady_clock::now();
  const auto same = find_same_measurements(a, b);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2)) << "each with each takes minutes";
  ASSERT_EQ(same.size(), 1u);
  EXPECT_EQ(same[0].first->path, "30");
  EXPECT_EQ(same[0].second->path, "70");
}

TEST(Audit, AVocabularyThatIsPaddedForItsLayoutIsADetail) {
  const struct {
    int64_t vocabulary, padded, tensor_parallel;
    bool is_detail;
  } cases[] = {{32000, 32768, 8, true},   {50257, 51200, 8, true},  {50257, 50304, 1, true}, {32000, 32768, 1, true},
               {32000, 34816, 16, false}, {32000, 32769, 8, false}, {32768, 33792, 8, false}};
  for (const auto& each : cases) {
    LoadedRun reference = plain(), subject = other();
    reference.result.model_info.shape->vocab_size = each.vocabulary;
    subject.result.model_info.shape->vocab_size = each.padded;
    subject.result.parallelism_config.tensor_model_parallel_size = each.tensor_parallel;
    for (const auto& [a, b] : {std::pair(reference, subject), std::pair(subject, reference)}) {
      const auto findings = audit_pair(participant(a), participant(b));
      EXPECT_EQ(find_code(findings, "model_shape") == nullptr, each.is_detail) << each.padded;
      EXPECT_EQ(find_code(findings, "model_details") != nullptr, each.is_detail) << each.padded;
    }
  }
}

TEST(Audit, EveryRuleHasItsOwnCodeAndErrorsSayWhatToDo) {
  std::set<std::string_view> codes;
  const auto check = [&](const auto& rule) {
    EXPECT_TRUE(codes.insert(rule.code).second) << rule.code;
    EXPECT_FALSE(rule.why.empty()) << rule.code;
    if (rule.severity != Severity::note) {
      EXPECT_FALSE(rule.remedy.empty()) << rule.code;
    }
  };
  for (const RunRule& rule : run_rules()) check(rule);
  for (const PairRule& rule : pair_rules()) check(rule);
}

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
        PairCase{"software", note, [](RunResult& r) { r.framework_version = "2.1"; }},
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
                   r.warmup = {20, "fixed", "", true};
                 }},
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

TEST(Audit, AFindingShowsTheValuesOfBothSides) {
  LoadedRun subject = plain();
  subject.result.model_info.shape->num_key_value_heads = 2;
  const auto findings = audit_pair(participant(plain()), participant(subject));
  const Finding* finding = find_code(findings, "model_shape");
  ASSERT_NE(finding, nullptr);
  ASSERT_EQ(finding->evidence.size(), 1u);
  EXPECT_EQ(finding->evidence[0].what, "KV heads");
  EXPECT_EQ(finding->evidence[0].reference, "8");
  EXPECT_EQ(finding->evidence[0].subject, "2");
  EXPECT_EQ(finding->sentence, "the models differ in shape: KV heads 8 against 2");
}

TEST(Audit, RepetitionsThatDifferMuchAreSaid) {
  Contender contender = participant(plain());
  contender.runs.push_back(sample_run("a_r2.json", Platform::nvd, Framework::nemo, 1.2));
  EXPECT_NE(find_code(audit_contender(contender), "runs_disagree"), nullptr);
}

TEST(Audit, UnknownFactsAreNotDifferences) {
  LoadedRun subject = plain();
  subject.result.precision.reset();
  subject.result.model_info.shape.reset();
  subject.result.learning_rates.clear();
  subject.result.loss_values.clear();
  const auto findings = audit_pair(participant(other()), participant(subject));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].code, "model_not_shown");
  EXPECT_EQ(findings[0].severity, Severity::warning);
}

TelemetrySummary machine_with_others(double threads) {
  TelemetrySummary machine;
  machine.source = "proc:machine";
  machine.others_busy_threads = threads;
  return machine;
}

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

TEST(Audit, AFigureInDoubtIsNotCompared) {
  const Metric &mfu = *find_metric("mfu"), &memory = *find_metric("peak_memory_allocated_gb");
  const auto compared = [](const Metric& metric, const char* code, double peak_of_subject) {
    Contender reference = participant(plain()), subject = participant(other());
    reference.runs[0].result.derived.peak = PeakInfo{"config:mine", 800e12, ""};
    subject.runs[0].result.derived.peak = PeakInfo{"config:mine", peak_of_subject, ""};
    subject.findings = {{code, Severity::warning, "", ""}};
    return !why_not_compared(metric, {}, reference, subject) && !why_not_compared(metric, {}, subject, reference);
  };
  EXPECT_FALSE(compared(mfu, "other_peak", 900e12));
  EXPECT_TRUE(compared(mfu, "other_peak", 800e12)) << "one peak cancels out";
  EXPECT_FALSE(compared(mfu, "unheard_of_mfu", 800e12));
  EXPECT_TRUE(compared(*find_metric("tokens_per_second"), "other_peak", 900e12));
  EXPECT_FALSE(compared(memory, "impossible_memory", 800e12));
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

std::string sentence_about(const RunResult& result, const std::string& code) {
  LoadedRun run = plain();
  run.result = result;
  const auto findings = audit_contender(participant(run));
  const Finding* finding = find_code(findings, code);
  return finding ? finding->sentence : "";
}

TEST(Audit, OutliersAreAttributedToWhatIsRecordedOfTheirSteps) {
  RunResult result = plain().result;
  result.statistics->outliers = {10, 21, 30, 40};
  result.events = std::vector<RunEvent>{{"checkpoint", {}, 10, {}, {}, {}, ""},
                                        {"checkpoint", {}, 20, {}, {}, {}, ""},
                                        {"evaluation", {}, 30, {}, {}, {}, ""},
                                        {"evaluation", {}, 35, {}, {}, {}, ""}};
  const std::string text = sentence_about(result, "outliers");
  EXPECT_NE(text.find("4 of 59 steady steps, the first is step 10: 2 with a checkpoint, 1 with an evaluation, 1 "
                      "unattributed"),
            std::string::npos)
      << text;
}

TEST(Audit, WhatIsKnownOfTheWholeRunStandsBesideTheOutliers) {
  RunResult result = plain().result;
  result.statistics->outliers = {10};
  TelemetrySummary device = machine_with_others(1.5);
  device.throttle_shares = {{"power", 0.05}, {"thermal", 0.12}};
  result.telemetry = {device};
  EXPECT_NE(sentence_about(result, "outlier")
                .find("1 of 59 steady steps, step 10: 1 unattributed; the clock was held down in 12 % of "
                      "the run's readings (thermal); other processes kept 1.5 hardware threads busy"),
            std::string::npos)
      << sentence_about(result, "outlier");
}

// A run of 60 steps of which `slow` took twice as long, with `usual` and `unusual` as what a sensor said in them.
struct SlowSteps {
  RunResult run = plain().result;
  std::set<int64_t> slow;
  explicit SlowSteps(std::set<int64_t> steps) : slow(std::move(steps)) {
    for (const int64_t step : slow) run.step_times[static_cast<size_t>(step - 1)] *= 2;
    summarise_run(run, {});
    run.step_telemetry.emplace();
  }
  std::vector<double> series(double usual, double unusual) const {
    std::vector<double> values(run.step_times.size(), usual);
    for (const int64_t step : slow) values[static_cast<size_t>(step - 1)] = unusual;
    return values;
  }
  std::string sentence() const {
    const std::string text = sentence_about(run, slow.size() < 3 ? "outlier" : "outliers");
    const size_t step = text.find(slow.size() == 1 ? "steady steps, step" : "the first is step");
    return step == std::string::npos ? text : text.substr(text.find(": ", step) + 2);
  }
};

bool begins_with(const std::string& text, const std::string& start) { return text.rfind(start, 0) == 0; }

TEST(Audit, AThrottledStepIsAttributedWhereOrdinaryOnesAreNot) {
  SlowSteps steps({20, 40});
  steps.run.step_telemetry->throttle_shares = {{"thermal", steps.series(0.0, 0.9)}, {"power", steps.series(1.0, 1.0)}};
  EXPECT_TRUE(begins_with(steps.sentence(), "2 with the clock held down by heat")) << steps.sentence();
  steps.run.step_telemetry->throttle_shares->at("thermal")[39] = 0.1;
  EXPECT_TRUE(begins_with(steps.sentence(), "1 with the clock held down by heat, 1 unattributed")) << steps.sentence();
  steps.run.step_telemetry->throttle_shares->at("thermal")[19] = std::nan("");  // no reading fell into it
  EXPECT_TRUE(begins_with(steps.sentence(), "2 unattributed")) << steps.sentence();
}

TEST(Audit, WhatOrdinaryStepsHaveTooExplainsNoOutlier) {
  SlowSteps steps({20});
  steps.run.step_telemetry->throttle_shares = {{"power", steps.series(1.0, 1.0)}};
  EXPECT_TRUE(begins_with(steps.sentence(), "1 unattributed")) << steps.sentence();
  steps.run.step_telemetry->throttle_shares = {{"power", steps.series(std::nan(""), 1.0)}};  // nothing to compare with
  EXPECT_TRUE(begins_with(steps.sentence(), "1 unattributed")) << steps.sentence();
}

TEST(Audit, AFastStepIsNotExplainedByThrottling) {
  SlowSteps steps({});
  steps.run.step_times[19] *= 0.5;
  summarise_run(steps.run, {});
  steps.slow = {20};
  steps.run.step_telemetry->throttle_shares = {{"thermal", steps.series(0.0, 1.0)}};
  EXPECT_TRUE(begins_with(steps.sentence(), "1 unattributed")) << steps.sentence();
}

TEST(Audit, ALowerClockCountsOnABusyDeviceWhoseReasonsAreNotRead) {
  SlowSteps steps({20});
  steps.run.step_telemetry->lowest_clock_hz = steps.series(1.98e9, 1.2e9);
  EXPECT_TRUE(begins_with(steps.sentence(), "1 unattributed")) << steps.sentence();  // it may have waited
  steps.run.step_telemetry->utilisation = steps.series(0.98, 0.4);
  EXPECT_TRUE(begins_with(steps.sentence(), "1 unattributed")) << steps.sentence();
  steps.run.step_telemetry->utilisation = steps.series(0.98, 0.97);
  EXPECT_TRUE(begins_with(steps.sentence(), "1 with a lower clock")) << steps.sentence();
  steps.run.step_telemetry->throttle_shares.emplace();  // they are read, and there was none
  EXPECT_TRUE(begins_with(steps.sentence(), "1 unattributed")) << steps.sentence();
}

TEST(Audit, ManyOutliersTakeNoSquareOfTime) {  // at a square, minutes
  constexpr int64_t k_steps = 200'000;
  RunResult run = plain().result;
  run.step_times.assign(k_steps, 1.0);
  run.statistics->outliers.clear();
  run.events.emplace();
  std::vector<double> heat(k_steps, 0.0), neighbours(k_steps, 0.0);
  for (int64_t step = 100; step <= k_steps; step += 4) {
    run.step_times[static_cast<size_t>(step - 1)] = 9.0;
    run.statistics->outliers.push_back(step);
    heat[static_cast<size_t>(step - 1)] = 1.0;
    run.events->push_back({"checkpoint", {}, step, {}, {}, {}, ""});
  }
  run.step_telemetry.emplace();
  run.step_telemetry->throttle_shares = {{"thermal", heat}, {"power", heat}};
  EXPECT_NE(sentence_about(run, "outliers").find("49976 with a checkpoint and"), std::string::npos)
      << sentence_about(run, "outliers");
}

TEST(Audit, NeighboursAndEventsOfOneStepAreBothSaid) {
  SlowSteps steps({20, 40});
  steps.run.step_telemetry->others_busy_threads = steps.series(0.0, 3.0);
  steps.run.events = std::vector<RunEvent>{{"checkpoint", {}, 20, {}, {}, {}, ""}};
  EXPECT_TRUE(begins_with(steps.sentence(),
                          "1 with a checkpoint and other processes on the processors, 1 with other processes on the "
                          "processors"))
      << steps.sentence();
}

TEST(Audit, ASpellOfSlowStepsIsNamed) {
  SlowSteps steps({20, 30, 31, 32, 33});
  EXPECT_TRUE(begins_with(steps.sentence(), "5 unattributed; the longest spell is steps 30 to 33")) << steps.sentence();
}

}  // namespace
}  // namespace tprimat
