#include "compare/gates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "compare/compare_runs.h"
#include "unit/compare/sample_runs.h"

namespace tprimat::results {
namespace {

// "column 7: no metric ..." of what is wrong with a gate; empty when nothing is.
std::string complaint(const std::string& text) {
  try {
    parse_gate(text);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::usage);
    return error.what();
  }
}

TEST(ParseGate, TakesAMetricAnOperatorAndAValue) {
  const Gate gate = parse_gate("tokens_per_second < -3%");
  EXPECT_EQ(gate.metric->key, "tokens_per_second");
  EXPECT_EQ(gate.compare, GateOperator::less);
  EXPECT_TRUE(gate.relative);
  EXPECT_DOUBLE_EQ(gate.threshold, -0.03);
  EXPECT_EQ(gate.text, "tokens_per_second < -3%");
  const Gate dense = parse_gate("\tpeak_memory_allocated_gb>=+1.5e0 ");
  EXPECT_EQ(dense.compare, GateOperator::greater_or_equal);
  EXPECT_FALSE(dense.relative);
  EXPECT_DOUBLE_EQ(dense.threshold, 1.5);
}

TEST(ParseGate, SaysWhereAndHowToMend) {
  const struct {
    const char *gate, *column, *words;
  } cases[] = {
      {"", "column 1", "a metric is missing"},
      {"  ", "column 3", "a metric is missing"},
      {"tokens_per_secnd < -3%", "column 1", "did you mean tokens_per_second"},
      {"speed < 1", "column 1", "choose one of tokens_per_second_per_gpu"},
      {"mfu", "column 4", "an operator is missing"},
      {"mfu == 3", "column 5", "\"== 3\" is not an operator"},
      {"mfu < ", "column 7", "a number is missing"},
      {"mfu < three", "column 7", "\"three\" is not a number"},
      {"mfu < nan", "column 7", "not a number"},
      {"mfu < 1e999", "column 7", "not a number"},
      {"mfu < -+3", "column 7", "not a number"},
      {"mfu < 3 %%", "column 10", "unexpected"},
      {"mfu < 3 GB", "column 9", "unexpected"},
  };
  for (const auto& each : cases) {
    const std::string text = complaint(each.gate);
    EXPECT_NE(text.find(each.column), std::string::npos) << each.gate << ": " << text;
    EXPECT_NE(text.find(each.words), std::string::npos) << each.gate << ": " << text;
  }
}

// b.json against a.json, whose steps take `ratio` times as long.
Comparison gated(double ratio, const std::vector<std::string>& gates,
                 const std::function<void(LoadedRuns&)>& change = {}) {
  LoadedRuns runs{{sample_run("a.json", Platform::nvd, Framework::nemo, ratio),
                   sample_run("b.json", Platform::nvd, Framework::nemo, 1.0)},
                  {}};
  std::vector<double>& times = runs.runs[1].result.step_times;
  std::reverse(times.begin() + 1, times.end());  // not a copy
  runs.runs[1] = again(runs.runs[1]);
  if (change) change(runs);
  CompareOptions options{.baseline = "a.json", .assumed_run_spread = 0};  // what the steps say is all there is
  for (const std::string& text : gates) options.gates.push_back(parse_gate(text));
  return compare_runs(std::move(runs), options);
}

GateOutcome outcome(double ratio, const std::string& gate) { return gated(ratio, {gate}).gates.at(0).outcome; }

TEST(Gates, TheWholeIntervalDecides) {
  EXPECT_EQ(outcome(0.90, "tokens_per_second < -3%"), GateOutcome::failed);
  EXPECT_EQ(outcome(1.00, "tokens_per_second < -3%"), GateOutcome::passed);
  EXPECT_EQ(outcome(1.10, "tokens_per_second < -3%"), GateOutcome::passed);
  EXPECT_EQ(outcome(1.00, "tokens_per_second < 0%"), GateOutcome::inconclusive);
  EXPECT_EQ(outcome(0.97, "tokens_per_second <= -3%"), GateOutcome::inconclusive);
}

TEST(Gates, WhatFollowsFromTheStepTimesTakesTheRatiosInterval) {
  const Comparison comparison = gated(0.9, {"tokens_per_second_per_gpu < -3%", "mean_step_time > 3%",
                                            "days_per_1e12_tokens > 3%", "tflops_per_gpu < -3%"});
  const Estimate& ratio = *comparison.groups[0].pairs[0].ratio;
  for (const GateResult& result : comparison.gates) {
    EXPECT_EQ(result.outcome, GateOutcome::failed) << describe_gate(result);
    ASSERT_TRUE(result.change && result.change->low && result.change->high);
  }
  EXPECT_DOUBLE_EQ(*comparison.gates[0].change->low, *ratio.low - 1);
  EXPECT_NEAR(*comparison.gates[1].change->low, 1 / *ratio.high - 1, 1e-12);
  EXPECT_NEAR(*comparison.gates[2].change->high, 1 / *ratio.low - 1, 1e-12);
  EXPECT_NEAR(*comparison.gates[3].change->high, *ratio.high - 1, 1e-12);
}

// Where neither batch nor length is known, tokens per step are all that tells the work of a step.
TEST(Gates, StepTimesOfOtherWorkPassNothing) {
  const auto other_work = [](LoadedRuns& runs) {
    for (int64_t tokens = 4096; LoadedRun & run : runs.runs) {
      TrainingConfig& config = run.result.training_config;
      config.global_batch_size.reset(), config.sequence_length.reset();
      config.tokens_per_step = tokens;
      tokens /= 4;
      run = again(run);
    }
  };
  const Comparison comparison = gated(1.5, {"mean_step_time > 5%", "p95_step_time > 5%"}, other_work);
  for (const GateResult& result : comparison.gates)
    EXPECT_EQ(result.outcome, GateOutcome::not_comparable) << describe_gate(result);
  EXPECT_EQ(comparison.groups[0].pairs[0].ratios.count("mean_step_time"), 0u);
}

TEST(Gates, AnAbsoluteThresholdIsInTheMetricsUnit) {
  EXPECT_EQ(outcome(1.0, "mean_step_time > 0.05"), GateOutcome::passed);
  EXPECT_EQ(outcome(0.9, "mean_step_time > 0.05"), GateOutcome::failed) << "0.9 s before, 1 s now";
  EXPECT_EQ(outcome(0.9, "mean_step_time > 0.1"), GateOutcome::inconclusive);
}

TEST(Gates, FiguresWithoutAnIntervalAreComparedAsValuesAndSaySo) {
  const auto more_memory = [](LoadedRuns& runs) { runs.runs[1].result.memory_metrics.peak_memory_allocated_gb = 44; };
  const Comparison comparison =
      gated(1.0, {"peak_memory_allocated_gb > 5%", "peak_memory_allocated_gb > 5", "final_loss > 0.1"}, more_memory);
  EXPECT_EQ(comparison.gates[0].outcome, GateOutcome::failed);
  EXPECT_EQ(comparison.gates[1].outcome, GateOutcome::passed) << "4 GB more";
  EXPECT_EQ(comparison.gates[2].outcome, GateOutcome::passed);
  EXPECT_NE(describe_gate(comparison.gates[0]).find("compared as values"), std::string::npos);
  EXPECT_EQ(comparison_status(comparison), ExitStatus::gate_failed);
}

TEST(Gates, ThroughputWithoutAnIntervalAnswersNothing) {
  const auto few_steps = [](LoadedRuns& runs) {
    for (LoadedRun& run : runs.runs) {
      for (auto* series : {&run.result.step_times, &run.result.loss_values, &run.result.learning_rates})
        series->resize(4);
      run.result.training_config.max_steps = 4;
      run = again(run);
    }
  };
  const Comparison comparison = gated(0.5, {"tokens_per_second < -3%"}, few_steps);
  EXPECT_EQ(comparison.gates[0].outcome, GateOutcome::inconclusive);
  EXPECT_EQ(comparison_status(comparison), ExitStatus::inconclusive);
}

TEST(Gates, AFigureThatASideLacksAnswersNothing) {
  const Comparison comparison = gated(1.0, {"mfu < -3%"});
  EXPECT_EQ(comparison.gates[0].outcome, GateOutcome::inconclusive);
  EXPECT_NE(describe_gate(comparison.gates[0]).find("lacks this figure"), std::string::npos);
}

TEST(Gates, OtherWorkIsNotComparableAndABrokenRunIsInvalid) {
  const auto other_precision = [](LoadedRuns& runs) { runs.runs[1].result.precision = Precision::fp8; };
  const Comparison other = gated(0.5, {"tokens_per_second < -3%"}, other_precision);
  EXPECT_EQ(other.gates[0].outcome, GateOutcome::not_comparable);
  EXPECT_NE(describe_gate(other.gates[0]).find("precisions differ"), std::string::npos);
  EXPECT_EQ(comparison_status(other), ExitStatus::not_comparable);
  const auto broken = [](LoadedRuns& runs) { runs.runs[1].result.status = RunStatus::failed; };
  EXPECT_EQ(comparison_status(gated(0.5, {"tokens_per_second < -3%"}, broken)), ExitStatus::work_failed);
}

TEST(Gates, OneKindOfMemoryIsNotHeldAgainstAnother) {
  const auto other_method = [](LoadedRuns& runs) {
    runs.runs[0].result.memory_metrics.measurement_method = "torch";
    runs.runs[1].result.memory_metrics.measurement_method = "nvml";
  };
  const Comparison comparison = gated(1.0, {"peak_memory_allocated_gb > 5%"}, other_method);
  EXPECT_EQ(comparison.gates[0].outcome, GateOutcome::not_comparable);
}

TEST(Gates, AShareAndADifferenceHaveOneInterval) {
  const auto change = gated(0.97, {"mean_step_time > 0.01"}, [](LoadedRuns&) {}).gates.at(0).change;
  const auto share = gated(0.97, {"mean_step_time > 1%"}).gates.at(0).change;
  ASSERT_TRUE(change && change->low && share && share->low);
  EXPECT_NEAR(*change->low, *share->low * 0.97, 1e-3);
  EXPECT_NEAR(*change->high, *share->high * 0.97, 1e-3);
}

TEST(Gates, ThreeRunsGiveEveryFigureAnInterval) {
  LoadedRuns runs;
  for (const char* folder : {"old", "new"})
    for (int i = 1; i <= 3; ++i) {
      runs.runs.push_back(sample_run(std::string(folder) + "/t_r" + std::to_string(i) + ".json", Platform::nvd,
                                     Framework::nemo, 1.0 + 0.001 * i + (folder[0] == 'n' ? 1e-4 : 0)));
      runs.runs.back().result.memory_metrics.peak_memory_allocated_gb = 40 + 0.5 * i;
    }
  const Comparison comparison = compare_runs(std::move(runs), {.baseline = "old/t_r1.json",
                                                               .gates = {parse_gate("peak_memory_allocated_gb > 5%"),
                                                                         parse_gate("peak_memory_allocated_gb > 0")}});
  ASSERT_TRUE(comparison.gates[0].change && comparison.gates[0].change->low);
  EXPECT_EQ(comparison.gates[0].outcome, GateOutcome::passed) << describe_gate(comparison.gates[0]);
  EXPECT_EQ(comparison.gates[1].outcome, GateOutcome::inconclusive);
}

TEST(Gates, AGateThatTestsNothingDoesNotPass) {
  LoadedRuns runs{{sample_run("a.json", Platform::nvd, Framework::nemo, 1.0)}, {}};
  EXPECT_THROW(compare_runs(runs, {.baseline = "a.json", .gates = {parse_gate("mfu < -3%")}}), Error);
}

TEST(Gates, TheWorstOutcomeIsTheStatus) {
  const auto status = [](std::vector<GateOutcome> outcomes) {
    std::vector<GateResult> results;
    for (const GateOutcome each : outcomes) results.push_back({.outcome = each});
    return gates_status(results);
  };
  using enum GateOutcome;
  EXPECT_EQ(status({passed, passed}), ExitStatus::done);
  EXPECT_EQ(status({passed, inconclusive}), ExitStatus::inconclusive);
  EXPECT_EQ(status({inconclusive, not_comparable}), ExitStatus::not_comparable);
  EXPECT_EQ(status({not_comparable, invalid}), ExitStatus::work_failed);
  EXPECT_EQ(status({invalid, inconclusive, failed}), ExitStatus::gate_failed);
}

}  // namespace
}  // namespace tprimat::results
