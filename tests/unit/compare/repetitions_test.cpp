#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "compare/audit.h"
#include "compare/compare_runs.h"
#include "compare/contender.h"
#include "unit/compare/sample_runs.h"

// Every run of a participant is held to its first and to the other side, not the first alone.
namespace tprimat::results {
namespace {

using Change = void (*)(RunResult&);

std::vector<LoadedRun> three_runs(const std::string& name, Platform platform, uint64_t seed) {
  std::vector<LoadedRun> runs;
  for (uint64_t k = 1; k <= 3; ++k) {
    runs.push_back(noisy_run(fmt::format("{}_r{}.json", name, k), platform, Framework::nemo, 1, seed + k));
    RunResult& run = runs.back().result;
    run.framework_version = "2.0";
    run.training_config.optimizer = "adamw";
    run.effective_config = std::map<std::string, std::string>{{"packing", "false"}};
    run.derived.headline_formula = "causal/1";
  }
  return runs;
}

Contender gathered(std::vector<LoadedRun> runs) {
  std::vector<Contender> contenders = gather_contenders(std::move(runs));
  EXPECT_EQ(contenders.size(), 1u);
  contenders[0].findings = audit_contender(contenders[0]);
  return contenders[0];
}

const Finding* find_code(const std::vector<Finding>& findings, std::string_view code) {
  const auto found =
      std::find_if(findings.begin(), findings.end(), [&](const Finding& each) { return each.code == code; });
  return found == findings.end() ? nullptr : &*found;
}

struct MixedCase {
  const char *name, *code, *words;
  Severity of_repetitions, of_pair;
  Change change;
};
using enum Severity;
const MixedCase k_mixed[] = {
    {"Optimizer", "optimizer", "optimizer adamw against sgd", error, error,
     [](RunResult& run) { run.training_config.optimizer = "sgd"; }},
    {"LearningRate", "learning_rate", "the learning-rate schedules differ", error, error,
     [](RunResult& run) {
       for (double& rate : run.learning_rates) rate *= 0.5;
     }},
    {"Packing", "data_settings", "packed sequences off against on", error, error,
     [](RunResult& run) { (*run.effective_config)["packing"] = "true"; }},
    {"Version", "versions", "version 2.0 against 2.1", warning, note,
     [](RunResult& run) { run.framework_version = "2.1"; }},
    {"Seed", "seed", "7 against 8", note, note, [](RunResult& run) { run.training_config.seed = 8; }},
    {"Formula", "flop_formula", "causal/1 against causal/2", warning, warning,
     [](RunResult& run) { run.derived.headline_formula = "causal/2"; }}};

// Which of the three runs of a side differs: the first, or one that nobody looks at first.
class Mixed : public ::testing::TestWithParam<std::tuple<MixedCase, size_t>> {
 protected:
  std::vector<LoadedRun> mixed(Platform platform, uint64_t seed) const {
    const auto& [each, which] = GetParam();
    std::vector<LoadedRun> runs = three_runs("b", platform, seed);
    for (LoadedRun& run : runs) run.result.training_config.seed = 7;
    each.change(runs[which].result);
    return runs;
  }
};

TEST_P(Mixed, RepetitionsAreHeldToTheFirst) {
  const auto& [each, which] = GetParam();
  const Contender contender = gathered(mixed(Platform::nvd, 10));
  const Finding* finding = find_code(contender.findings, k_runs_differ);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, each.of_repetitions);
  if (which > 0) {
    EXPECT_NE(finding->sentence.find(each.words), std::string::npos) << finding->sentence;
    EXPECT_NE(finding->sentence.find(fmt::format("b_r1.json against b_r{}.json", which + 1)), std::string::npos)
        << finding->sentence;
  }
}

TEST_P(Mixed, EveryRunIsHeldToTheOtherSide) {
  const auto& [each, which] = GetParam();
  std::vector<LoadedRun> others = three_runs("a", Platform::nvd, 20);
  for (LoadedRun& run : others) run.result.training_config.seed = 7;
  const Contender reference = gathered(others), subject = gathered(mixed(Platform::nvd, 10));
  for (const bool swapped : {false, true}) {
    const auto findings = swapped ? audit_pair(subject, reference) : audit_pair(reference, subject);
    const Finding* finding = find_code(findings, each.code);
    ASSERT_NE(finding, nullptr);
    EXPECT_EQ(finding->severity, each.of_pair);
    EXPECT_NE(finding->sentence.find(fmt::format("b_r{}.json", which + 1)), std::string::npos) << finding->sentence;
    EXPECT_EQ(std::count_if(findings.begin(), findings.end(),
                            [&](const Finding& other) { return other.code == finding->code; }),
              1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Mixed, ::testing::Combine(::testing::ValuesIn(k_mixed), ::testing::Values(0, 1, 2)),
                         [](const auto& each) {
                           return fmt::format("{}{}", std::get<0>(each.param).name, std::get<1>(each.param) + 1);
                         });

TEST(Repetitions, AreHeldToTheStatedLossTolerance) {
  const auto finding_with = [](std::optional<double> tolerance) {
    std::vector<LoadedRun> runs = three_runs("b", Platform::nvd, 10);
    for (double& loss : runs[1].result.loss_values) loss *= 1.1;
    const Comparison comparison = compare_runs({std::move(runs), {}}, {.audit = {tolerance}});
    const Finding* finding = find_code(comparison.groups.at(0).contenders.at(0).findings, k_runs_differ);
    return finding == nullptr ? "" : finding->sentence;
  };
  EXPECT_NE(finding_with({}).find("nats at step"), std::string::npos) << finding_with({});
  EXPECT_EQ(finding_with(0.2), "");
}

TEST(Repetitions, AreToldByTheirNamesOfLogsToo) {
  EXPECT_EQ(repetition_key("out/train_r2.json"), "out/train");
  EXPECT_EQ(repetition_key("logs/job_r1.log.json"), "logs/job");
  EXPECT_EQ(repetition_key("logs/job_r12.out.json"), repetition_key("logs/job_r1.out.json"));
  EXPECT_EQ(repetition_key("logs/job_r1.5.json"), "logs/job_r1.5.json");
}

TEST(Repetitions, OfOneKindAreNotSaidToDiffer) {
  EXPECT_EQ(find_code(gathered(three_runs("a", Platform::nvd, 1)).findings, k_runs_differ), nullptr);
}

TEST(Repetitions, WhatIsAlikeInAllRunsIsSaidAsOfTwo) {
  std::vector<LoadedRun> others = three_runs("b", Platform::nvd, 5);
  for (LoadedRun& run : others) run.result.training_config.optimizer = "sgd";
  const auto findings = audit_pair(gathered(three_runs("a", Platform::nvd, 1)), gathered(others));
  EXPECT_EQ(find_code(findings, "optimizer")->sentence, "the optimizers differ: optimizer adamw against sgd");
}

TEST(Repetitions, WhatOneRunAloneTellsIsHeldToWhatOneOfTheOtherSideTells) {
  std::vector<LoadedRun> ours = three_runs("a", Platform::nvd, 1), theirs = three_runs("b", Platform::nvd, 5);
  for (size_t i = 0; i < 2; ++i)
    ours[i].result.training_config.optimizer.reset(), theirs[2 - i].result.training_config.optimizer.reset();
  theirs[0].result.training_config.optimizer = "sgd";
  EXPECT_NE(find_code(audit_pair(gathered(ours), gathered(theirs)), "optimizer"), nullptr);
}

TEST(Repetitions, AMixtureWithholdsTheVerdict) {
  std::vector<LoadedRun> files = three_runs("a", Platform::nvd, 1);
  for (LoadedRun& run : three_runs("b", Platform::amd, 5)) files.push_back(std::move(run));
  files[4].result.training_config.optimizer = "sgd";
  const Comparison comparison = compare_runs({files, {}}, {});
  EXPECT_EQ(comparison_status(comparison), ExitStatus::not_comparable);
  files.erase(files.begin(), files.begin() + 3);
  EXPECT_EQ(comparison_status(compare_runs({files, {}}, {})), ExitStatus::not_comparable) << "alone, too";
}

TEST(Repetitions, AFactThatOneRunLacksIsMissing) {
  std::vector<LoadedRun> runs = three_runs("a", Platform::nvd, 1);
  runs[1].result.loss_values.clear();
  const Contender contender = gathered(runs);
  const Finding* finding = find_code(contender.findings, "loss_missing");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->sentence.find("in a_r2.json"), std::string::npos) << finding->sentence;
}

TEST(Repetitions, OneRunStandsForAllThatStateTheSame) {
  std::vector<LoadedRun> runs = three_runs("a", Platform::nvd, 1);
  EXPECT_EQ(gathered(runs).distinct.size(), 1u);
  runs[2].result.framework_version = "2.1";
  EXPECT_EQ(gathered(runs).distinct, (std::vector<size_t>{0, 2}));
}

}  // namespace
}  // namespace tprimat::results
