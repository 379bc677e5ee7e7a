#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "compare/compare_runs.h"
#include "compare/contender.h"
#include "unit/compare/sample_runs.h"

namespace tprimat::results {
namespace {

// `runs` runs of each of two participants, the second `speed` times as fast.
std::vector<LoadedRun> draw_files(size_t runs, double speed, uint64_t seed) {
  std::vector<LoadedRun> files;
  for (size_t k = 1; k <= runs; ++k) {
    files.push_back(noisy_run(fmt::format("a_r{}.json", k), Platform::nvd, Framework::nemo, 1, 100 * seed + k));
    files.push_back(
        noisy_run(fmt::format("b_r{}.json", k), Platform::amd, Framework::prim, 1 / speed, 100 * seed + 50 + k));
  }
  return files;
}

Pair only_pair(const std::vector<LoadedRun>& files, const CompareOptions& options = {}) {
  const Comparison comparison = compare_runs({files, {}}, options);
  EXPECT_EQ(comparison.groups.size(), 1u);
  EXPECT_EQ(comparison.groups[0].pairs.size(), 1u);
  return comparison.groups[0].pairs[0];
}

Verdict mirror(Verdict verdict) {
  return verdict == Verdict::faster ? Verdict::slower : verdict == Verdict::slower ? Verdict::faster : verdict;
}

// All kinds of pairs: one to five runs a side, apart by nothing up to 4 %.
class Pairs : public ::testing::TestWithParam<std::tuple<size_t, double>> {
 protected:
  std::vector<LoadedRun> files() const { return draw_files(std::get<0>(GetParam()), std::get<1>(GetParam()), 3); }
};

TEST_P(Pairs, AreReciprocal) {
  const Pair up = only_pair(files(), {.baseline = "nvd"}), down = only_pair(files(), {.baseline = "amd"});
  EXPECT_NEAR(up.ratio->value * down.ratio->value, 1, 1e-12);
  EXPECT_NEAR(*up.ratio->low * *down.ratio->high, 1, 1e-12);
  EXPECT_NEAR(*up.ratio->high * *down.ratio->low, 1, 1e-12);
  EXPECT_EQ(up.verdict, mirror(down.verdict));
  EXPECT_NEAR(up.statistics->p_value, down.statistics->p_value, 1e-12);
  EXPECT_EQ(up.statistics->more_runs, down.statistics->more_runs);
}

TEST_P(Pairs, DoNotDependOnTheOrderOfTheFiles) {
  const Pair before = only_pair(files(), {.baseline = "nvd"});
  std::mt19937 random(1);
  for (int i = 0; i < 5; ++i) {
    std::vector<LoadedRun> mixed = files();
    std::shuffle(mixed.begin(), mixed.end(), random);
    const Pair after = only_pair(mixed, {.baseline = "nvd"});
    EXPECT_EQ(after.ratio->value, before.ratio->value);
    EXPECT_EQ(after.ratio->low, before.ratio->low);
    EXPECT_EQ(after.ratio->high, before.ratio->high);
    EXPECT_EQ(after.verdict, before.verdict);
    EXPECT_EQ(after.explanation, before.explanation);
  }
}

TEST_P(Pairs, CountACopyOnce) {
  const Pair before = only_pair(files(), {.baseline = "nvd"});
  std::vector<LoadedRun> more = files();
  more.push_back({"a_r8.json", more[0].result});
  more.push_back({"b_r9.json", more[1].result});
  more.back().result.timestamp =
      "2026-01-01T09:09:09Z";  // edited, but no two trainings take the same time step by step
  const Pair after = only_pair(more, {.baseline = "nvd"});
  EXPECT_EQ(after.ratio->low, before.ratio->low);
  EXPECT_EQ(after.ratio->high, before.ratio->high);
  EXPECT_EQ(after.statistics->subject_runs, before.statistics->subject_runs);
  const auto contenders = compare_runs({more, {}}, {.baseline = "nvd"}).groups[0].contenders;
  const auto& findings = contenders[0].findings;
  const auto note =
      std::find_if(findings.begin(), findings.end(), [](const Finding& each) { return each.code == "copies"; });
  ASSERT_NE(note, findings.end());
  EXPECT_NE(note->sentence.find("a_r8.json of a_r1.json"), std::string::npos) << note->sentence;
}

TEST_P(Pairs, HaveAnIntervalAroundTheRatio) {
  const Pair pair = only_pair(files(), {.baseline = "nvd"});
  EXPECT_LT(*pair.ratio->low, pair.ratio->value);
  EXPECT_GT(*pair.ratio->high, pair.ratio->value);
  EXPECT_NEAR(*pair.ratio->low * *pair.ratio->high, pair.ratio->value * pair.ratio->value, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Pairs,
                         ::testing::Combine(::testing::Values(size_t{1}, size_t{2}, size_t{3}, size_t{5}),
                                            ::testing::Values(1.0, 1.004, 1.01, 1.04)));

// Logs that round to a tenth of a second may well agree in twenty steps: such runs are no copies.
TEST(Copies, RoundedTimesThatAgreeAreTwoRuns) {
  std::vector<LoadedRun> files = draw_files(1, 1, 1);
  for (LoadedRun& file : files)
    for (double& seconds : file.result.step_times) seconds = &seconds == &file.result.step_times[9] ? 9.8 : 9.7;
  files.push_back({"a_r2.json", files[0].result});
  files.back().result.timestamp = "2026-01-01T03:00:00Z";
  for (LoadedRun& file : files) file = again(file);
  EXPECT_EQ(only_pair(files, {.baseline = "nvd"}).statistics->reference_runs, 2);
  files.back().result.timestamp = files[0].result.timestamp;
  EXPECT_EQ(only_pair(files, {.baseline = "nvd"}).statistics->reference_runs, 1);
}

// Forty equal participants and one that is barely ahead: alone it wins, among all pairs it may be chance.
TEST(FalseDiscovery, AWinnerAmongManyMustBeClearer) {
  std::vector<LoadedRun> files = draw_files(3, 1.0145, 2);
  const Pair alone = only_pair(files, {.baseline = "nvd"});
  ASSERT_EQ(alone.verdict, Verdict::faster) << alone.explanation;
  EXPECT_EQ(*alone.statistics->adjusted_p_value, alone.statistics->p_value);
  for (int i = 0; i < 40; ++i)
    for (size_t k = 1; k <= 3; ++k)
      files.push_back(noisy_run(fmt::format("c{}_r{}.json", i, k), Platform::nvd, Framework::mega, 1,
                                static_cast<uint64_t>(1000 + 10 * i) + k));
  const Comparison comparison = compare_runs({files, {}}, {.baseline = "nemo"});
  const ModelGroup& group = comparison.groups[0];
  const auto found = std::find_if(group.pairs.begin(), group.pairs.end(), [&](const Pair& pair) {
    return group.contenders[pair.subject].label == "AMD Primus";
  });
  ASSERT_NE(found, group.pairs.end());
  EXPECT_EQ(found->ratio->low, alone.ratio->low) << "the interval stays what it is";
  EXPECT_EQ(found->verdict, Verdict::inconclusive) << found->explanation;
  EXPECT_EQ(found->statistics->tested_pairs, 41);
  EXPECT_NE(found->explanation.find("lies beyond 1 %, but some of 41 pairs do so by chance"), std::string::npos)
      << found->explanation;
}

TEST(MoreRuns, AreSaidWhereTheyWouldSettleIt) {
  std::vector<LoadedRun> files;
  const double lucks[] = {0.985, 1.0, 1.015};
  for (size_t k = 0; k < 3; ++k) {
    files.push_back(noisy_run(fmt::format("a_r{}.json", k), Platform::nvd, Framework::nemo, 1.03 * lucks[k], k));
    files.push_back(noisy_run(fmt::format("b_r{}.json", k), Platform::amd, Framework::prim, lucks[k], 10 + k));
  }
  const Pair pair = only_pair(files, {.baseline = "nvd"});
  ASSERT_EQ(pair.verdict, Verdict::inconclusive);
  EXPECT_TRUE(*pair.statistics->more_runs_help);
  EXPECT_GT(*pair.statistics->more_runs, 3);
  EXPECT_NE(
      pair.explanation.find(fmt::format("about {} more runs per side would settle it", *pair.statistics->more_runs)),
      std::string::npos)
      << pair.explanation;
}

TEST(MoreRuns, AreNotAskedForWhereTheRatioIsTheMargin) {
  std::vector<LoadedRun> files;
  for (size_t k = 0; k < 3; ++k) {
    const double luck = 1 + 0.005 * (static_cast<double>(k) - 1);
    files.push_back(sample_run(fmt::format("a_r{}.json", k), Platform::nvd, Framework::nemo, 1.01 * luck));
    files.push_back(sample_run(fmt::format("b_r{}.json", k), Platform::amd, Framework::prim, luck));
  }
  const Pair pair = only_pair(files, {.baseline = "nvd"});
  ASSERT_EQ(pair.verdict, Verdict::inconclusive);
  EXPECT_FALSE(pair.statistics->more_runs);
  EXPECT_FALSE(*pair.statistics->more_runs_help);
  EXPECT_NE(pair.explanation.find("more runs would hardly settle it"), std::string::npos) << pair.explanation;
}

TEST(MoreRuns, AreNotAskedForWhereTheMachineIsNotQuiet) {
  std::vector<LoadedRun> files;
  for (size_t k = 0; k < 3; ++k) {
    files.push_back(
        sample_run(fmt::format("a_r{}.json", k), Platform::nvd, Framework::nemo, 1 + 0.3 * static_cast<double>(k)));
    files.push_back(sample_run(fmt::format("b_r{}.json", k), Platform::amd, Framework::prim, 1.2));
  }
  const Pair pair = only_pair(files, {.baseline = "nvd"});
  ASSERT_EQ(pair.verdict, Verdict::inconclusive);
  EXPECT_NE(pair.explanation.find("the runs differ too much ("), std::string::npos) << pair.explanation;
  EXPECT_NE(pair.explanation.find("tokens/s): quiet the machine first"), std::string::npos) << pair.explanation;
  EXPECT_EQ(pair.explanation.find("more run"), std::string::npos) << pair.explanation;
}

void record_clock(std::vector<LoadedRun>& files, Platform platform, double hertz) {
  for (LoadedRun& file : files) {
    if (file.result.platform != platform) continue;
    TelemetrySummary device;
    device.source = "nvml:0";
    device.mean_clock_hz = hertz;
    file.result.telemetry = {device};
  }
}

TEST(Cycles, TellAGapThatIsTheClocks) {
  std::vector<LoadedRun> files = draw_files(3, 1.1, 4);
  record_clock(files, Platform::nvd, 1.5e9);
  EXPECT_FALSE(only_pair(files, {.baseline = "nvd"}).statistics->cycle_ratio) << "one side alone says nothing";
  record_clock(files, Platform::amd, 1.65e9);
  const Pair pair = only_pair(files, {.baseline = "nvd"});
  EXPECT_EQ(pair.verdict, Verdict::faster);
  EXPECT_NEAR(pair.statistics->cycle_ratio->value, pair.ratio->value * 1.5 / 1.65, 1e-12);
  EXPECT_NEAR(*pair.statistics->cycle_ratio->low, *pair.ratio->low * 1.5 / 1.65, 1e-12);
  EXPECT_EQ(pair.statistics->cycle_verdict, Verdict::same);
  EXPECT_NE(pair.findings.back().sentence.find("the clocks explain the gap"), std::string::npos);
  EXPECT_NE(pair.findings.back().sentence.find("a cycle of a different device does different work"), std::string::npos);
}

TEST(Cycles, TellAGapThatSurvives) {
  std::vector<LoadedRun> files = draw_files(3, 1.1, 4);
  record_clock(files, Platform::nvd, 1.5e9);
  record_clock(files, Platform::amd, 1.5e9);
  const Pair pair = only_pair(files, {.baseline = "nvd"});
  EXPECT_EQ(pair.statistics->cycle_verdict, Verdict::faster);
  EXPECT_EQ(pair.findings.back().code, "clock");
  EXPECT_NE(pair.findings.back().sentence.find("the gap remains per clock cycle"), std::string::npos);
}

TEST(Cycles, TellAGapThatTurns) {
  std::vector<LoadedRun> files = draw_files(3, 1.1, 4);
  record_clock(files, Platform::nvd, 1.5e9);
  record_clock(files, Platform::amd, 3e9);
  const Pair pair = only_pair(files, {.baseline = "nvd"});
  EXPECT_EQ(pair.statistics->cycle_verdict, Verdict::slower);
  EXPECT_NE(pair.findings.back().sentence.find("the other side leads"), std::string::npos);
}

TEST(Cycles, AClockThatNoDeviceHasIsNone) {
  std::vector<LoadedRun> files = draw_files(3, 1.1, 4);
  for (const double hertz : {5e-324, 0.0, -1.0, 1e300}) {
    record_clock(files, Platform::nvd, hertz);
    record_clock(files, Platform::amd, hertz);
    EXPECT_FALSE(only_pair(files, {.baseline = "nvd"}).statistics->cycle_ratio) << hertz;
  }
}

// Tokens/s, MFU, joules and dollars are the step time times what is known: their intervals are its interval.
TEST(Intervals, AreCarriedThroughToEveryFigure) {
  LoadedRun run = noisy_run("a.json", Platform::nvd, Framework::nemo, 1, 1);
  TelemetrySummary board;
  board.energy_joules = 59e3;
  board.energy_valid = true;
  run.result.telemetry = {board};
  summarise_run(run.result, {.peak = PeakInfo{"config", 989e12, "", {}, {}}, .usd_per_hour = 24});
  const StepStatistics& steps = *run.result.statistics;
  const double low = *steps.ci95_low / steps.mean, high = *steps.ci95_high / steps.mean;
  const Derived& d = run.result.derived;
  for (const auto& time_like : {d.joules_per_token, d.usd_per_1e12_tokens}) {
    EXPECT_NEAR(*time_like->low / time_like->value, low, 1e-12);
    EXPECT_NEAR(*time_like->high / time_like->value, high, 1e-12);
  }
  for (const auto& rate_like : {d.tokens_per_second, d.tokens_per_second_per_gpu, d.tflops_per_gpu, d.mfu}) {
    EXPECT_NEAR(*rate_like->low / rate_like->value, 1 / high, 1e-12);
    EXPECT_NEAR(*rate_like->high / rate_like->value, 1 / low, 1e-12);
  }
  const auto days = find_metric("days_per_1e12_tokens")->read(run.result);
  EXPECT_NEAR(*days->high / days->value, high, 1e-12);
}

}  // namespace
}  // namespace tprimat::results
