#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "compare/audit.h"
#include "unit/compare/audited_runs.h"

namespace tprimat::results {
namespace {

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
  result.events = std::vector<RunEvent>{{EventKind::checkpoint, {}, 10, {}, {}, {}, ""},
                                        {EventKind::checkpoint, {}, 20, {}, {}, {}, ""},
                                        {EventKind::evaluation, {}, 30, {}, {}, {}, ""},
                                        {EventKind::evaluation, {}, 35, {}, {}, {}, ""}};
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
                .find("1 of 59 steady steps, step 10: 1 unattributed; the clock was throttled in 12 % of "
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
  EXPECT_TRUE(begins_with(steps.sentence(), "2 with thermal throttling")) << steps.sentence();
  steps.run.step_telemetry->throttle_shares->at("thermal")[39] = 0.1;
  EXPECT_TRUE(begins_with(steps.sentence(), "1 with thermal throttling, 1 unattributed")) << steps.sentence();
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
    run.events->push_back({EventKind::checkpoint, {}, step, {}, {}, {}, ""});
  }
  run.step_telemetry.emplace();
  run.step_telemetry->throttle_shares = {{"thermal", heat}, {"power", heat}};
  EXPECT_NE(sentence_about(run, "outliers").find("49976 with a checkpoint and"), std::string::npos)
      << sentence_about(run, "outliers");
}

TEST(Audit, NeighboursAndEventsOfOneStepAreBothSaid) {
  SlowSteps steps({20, 40});
  steps.run.step_telemetry->others_busy_threads = steps.series(0.0, 3.0);
  steps.run.events = std::vector<RunEvent>{{EventKind::checkpoint, {}, 20, {}, {}, {}, ""}};
  EXPECT_TRUE(begins_with(steps.sentence(),
                          "1 with a checkpoint and other processes on the CPUs, 1 with other processes on the CPUs"))
      << steps.sentence();
}

TEST(Audit, ASpellOfSlowStepsIsNamed) {
  SlowSteps steps({20, 30, 31, 32, 33});
  EXPECT_TRUE(begins_with(steps.sentence(), "5 unattributed; the longest streak is steps 30 to 33"))
      << steps.sentence();
}

}  // namespace
}  // namespace tprimat::results
