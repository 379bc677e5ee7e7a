#include "compare/time_to_train.h"

#include <gtest/gtest.h>

#include <functional>

#include "compare/compare_runs.h"
#include "result/metrics.h"
#include "unit/compare/audited_runs.h"

namespace tprimat::results {
namespace {

TimeToTrain reached_after(double seconds) {
  TimeToTrain time;
  time.benchmark = "llama2_70b_lora", time.division = "closed", time.status = "success";
  time.seconds = seconds;
  time.samples = 3072, time.eval_samples = 173;
  time.target_quality = 0.925, time.reached_quality = 0.924, time.higher_is_better = false;
  return time;
}

// Of a log without steps.
LoadedRun without_steps(const std::string& file, Framework framework, double seconds) {
  RunResult run = sample_facts(Platform::nvd, framework);
  run.timestamp += file;  // no copy
  run.time_to_train = reached_after(seconds);
  summarise_run(run, {});
  return {file, run};
}

const Pair& only_pair(const Comparison& comparison) { return comparison.groups.at(0).pairs.at(0); }

TEST(TimeToTrain, ComparesWhatHasNoSteps) {
  const Comparison comparison = compare_runs(
      {{without_steps("a.json", Framework::nemo, 600), without_steps("b.json", Framework::prim, 400)}, {}}, {});
  const Pair& pair = only_pair(comparison);
  EXPECT_TRUE(pair.comparable);
  ASSERT_TRUE(pair.time_to_train.has_value());
  EXPECT_DOUBLE_EQ(pair.time_to_train->ratio->value, 1.5);
  EXPECT_FALSE(pair.time_to_train->ratio->low.has_value());
  EXPECT_EQ(pair.verdict, Verdict::inconclusive);  // one run per side has no interval
  EXPECT_DOUBLE_EQ(pair.ratios.at("time_to_train"), 400.0 / 600);
  EXPECT_NE(headline(comparison, comparison.groups[0], pair).find("1.500x sooner"), std::string::npos);
  EXPECT_EQ(comparison_status(comparison), ExitStatus::done);
}

TEST(TimeToTrain, JudgesRepetitions) {
  LoadedRuns runs;
  for (const double extra : {0.0, 4.0, -4.0}) {
    const std::string number = "_r" + std::to_string(runs.runs.size() / 2 + 1) + ".json";
    runs.runs.push_back(without_steps("a" + number, Framework::nemo, 600 + extra));
    runs.runs.push_back(without_steps("b" + number, Framework::prim, 400 + extra));
  }
  const Comparison comparison = compare_runs(runs, {});
  const Pair& pair = only_pair(comparison);
  EXPECT_EQ(pair.verdict, Verdict::faster);
  EXPECT_LT(*pair.time_to_train->ratio->low, 1.5);
  EXPECT_GT(*pair.time_to_train->ratio->high, 1.5);
  EXPECT_NE(pair.time_to_train->sentence.find("in the mean of 3 runs"), std::string::npos);
}

TEST(TimeToTrain, RefusesOtherRules) {
  using Change = void (*)(TimeToTrain& time);
  for (const Change change :
       {Change([](TimeToTrain& t) { t.target_quality = 0.92; }),
        Change([](TimeToTrain& t) { t.target_quality.reset(); }), Change([](TimeToTrain& t) { t.division = "open"; }),
        Change([](TimeToTrain& t) { t.eval_samples = 100; }), Change([](TimeToTrain& t) { t.benchmark = "bert"; }),
        Change([](TimeToTrain& t) { t.status = "aborted"; }), Change([](TimeToTrain& t) { t.reached_quality = 1.5; }),
        Change([](TimeToTrain& t) { t.reached_quality.reset(); })}) {
    LoadedRun other = without_steps("b.json", Framework::prim, 400);
    change(*other.result.time_to_train);
    const Comparison comparison = compare_runs({{without_steps("a.json", Framework::nemo, 600), other}, {}}, {});
    const Pair& pair = only_pair(comparison);
    EXPECT_FALSE(pair.comparable);
    EXPECT_FALSE(pair.time_to_train->ratio.has_value());
    EXPECT_TRUE(pair.time_to_train->sentence.starts_with("the times to train are not comparable: "));
    EXPECT_FALSE(pair.ratios.contains("time_to_train"));
    EXPECT_NE(find_code(pair.findings, "time_to_train_rules"), nullptr);
    EXPECT_NE(find_code(pair.findings, "nothing_common"), nullptr);
    EXPECT_EQ(comparison_status(comparison), ExitStatus::not_comparable);
  }
}

std::string sentence_of(const std::function<void(TimeToTrain&)>& change_first,
                        const std::function<void(TimeToTrain&)>& change_second) {
  LoadedRun first = without_steps("a.json", Framework::nemo, 600),
            second = without_steps("b.json", Framework::prim, 400);
  change_first(*first.result.time_to_train), change_second(*second.result.time_to_train);
  return only_pair(compare_runs({{first, second}, {}}, {})).time_to_train->sentence;
}

TEST(TimeToTrain, SaysWhichTargetWasMissed) {
  const auto keep = [](TimeToTrain&) {};
  EXPECT_NE(sentence_of(keep, [](TimeToTrain& t) { t.reached_quality = 1.5; }).find("1.5 (misses the target 0.925)"),
            std::string::npos);
  EXPECT_NE(sentence_of([](TimeToTrain& t) { t.reached_quality.reset(); }, keep).find("reached quality unknown"),
            std::string::npos);
  EXPECT_NE(sentence_of(keep, [](TimeToTrain& t) { t.reached_quality = t.target_quality; }).find("sooner"),
            std::string::npos);
}

TEST(TimeToTrain, TheSideOfAnUnknownBenchmarkIsThatOfTheFile) {
  const auto unlisted = [](TimeToTrain& t) { t.benchmark = "other", t.higher_is_better = true; };
  const auto rising = [](TimeToTrain& t) {
    t.benchmark = "other", t.higher_is_better = true, t.reached_quality = 0.95;
  };
  const auto unclear = [](TimeToTrain& t) { t.benchmark = "other", t.higher_is_better.reset(); };
  EXPECT_NE(sentence_of(rising, rising).find("sooner"), std::string::npos);
  EXPECT_NE(sentence_of(rising, unlisted).find("misses the target"), std::string::npos);
  EXPECT_NE(sentence_of(unclear, unclear).find("unknown whether"), std::string::npos);
}

TEST(TimeToTrain, TheClosedDivisionHasOneTarget) {
  const auto easy = [](TimeToTrain& t) { t.target_quality = 9.5, t.reached_quality = 9; };
  EXPECT_NE(sentence_of(easy, easy).find("target quality 9.5 (the closed division demands 0.925)"), std::string::npos);
  const auto open = [&](TimeToTrain& t) { easy(t), t.division = "open"; };
  EXPECT_NE(sentence_of(open, open).find("sooner"), std::string::npos);
}

TEST(TimeToTrain, IsAboveZero) {
  const Metric& metric = *find_metric("time_to_train");
  EXPECT_TRUE(metric.read(without_steps("a.json", Framework::nemo, 5).result).has_value());
  EXPECT_FALSE(metric.read(without_steps("a.json", Framework::nemo, -5).result).has_value());
  EXPECT_FALSE(metric.read(without_steps("a.json", Framework::nemo, 0).result).has_value());
}

// An audit that withholds the verdict on rates says nothing about these times.
TEST(TimeToTrain, StandsBesideRates) {
  LoadedRuns runs = two_runs(1.5);
  runs.runs[0].result.time_to_train = reached_after(600), runs.runs[1].result.time_to_train = reached_after(400);
  runs.runs[1].result.precision = Precision::fp8;
  const Comparison comparison = compare_runs(runs, {});
  const Pair& pair = only_pair(comparison);
  EXPECT_FALSE(pair.comparable);
  EXPECT_DOUBLE_EQ(pair.time_to_train->ratio->value, 1.5);
  EXPECT_EQ(find_code(pair.findings, "nothing_common"), nullptr);
}

TEST(TimeToTrain, IsAbsentForOtherRuns) {
  const Comparison comparison = compare_runs(two_runs(1.5), {});
  EXPECT_FALSE(only_pair(comparison).time_to_train.has_value());
  LoadedRuns runs = two_runs(1.5);
  runs.runs[0] = without_steps("a.json", Framework::nemo, 600);
  const Comparison mixed = compare_runs(runs, {});
  EXPECT_FALSE(only_pair(mixed).time_to_train.has_value());
  EXPECT_NE(find_code(only_pair(mixed).findings, "nothing_common"), nullptr);
}

}  // namespace
}  // namespace tprimat::results
