#include "compare/copies.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "compare/audit.h"
#include "compare/compare_runs.h"
#include "compare/contender.h"
#include "unit/compare/sample_runs.h"

// What somebody may do to a result file so that it looks like a second run.
namespace tprimat::results {
namespace {

void round_to(RunResult& run, int places, double (*by)(double) = std::round) {
  const double scale = std::pow(10, places);
  for (double& seconds : run.step_times) seconds = by(seconds * scale) / scale;
}

void shuffle_steps(RunResult& run) {
  std::mt19937_64 random(7);
  std::shuffle(run.step_times.begin() + 1, run.step_times.end(), random);
}

struct Disguise {
  const char* name;
  void (*change)(RunResult&);
};
const Disguise k_disguises[] = {
    {"Rounded", [](RunResult& run) { round_to(run, 5); }},
    {"RoundedTwice",
     [](RunResult& run) {
       round_to(run, 6);
       round_to(run, 4);
     }},
    {"Truncated", [](RunResult& run) { round_to(run, 4, std::floor); }},
    {"SinglePrecision",
     [](RunResult& run) {
       for (double& seconds : run.step_times) seconds = static_cast<float>(seconds);
     }},
    {"Prefix", [](RunResult& run) { run.step_times.resize(40); }},
    {"Suffix", [](RunResult& run) { run.step_times.erase(run.step_times.begin(), run.step_times.begin() + 20); }},
    {"Middle",
     [](RunResult& run) {
       run.step_times.erase(run.step_times.begin(), run.step_times.begin() + 10);
       run.step_times.resize(40);
     }},
    {"Milliseconds",
     [](RunResult& run) {
       for (double& seconds : run.step_times) seconds *= 1e3;
     }},
    {"Minutes",
     [](RunResult& run) {
       for (double& seconds : run.step_times) seconds /= 60;
     }},
    {"OneStepChanged", [](RunResult& run) { run.step_times[30] *= 1.5; }},
    {"EveryFourthStepChanged",
     [](RunResult& run) {
       for (size_t i = 0; i < run.step_times.size(); i += 4) run.step_times[i] *= 1.001;
     }},
    {"RoundedSuffixInMilliseconds",
     [](RunResult& run) {
       run.step_times.erase(run.step_times.begin(), run.step_times.begin() + 20);
       for (double& seconds : run.step_times) seconds *= 1e3;
       round_to(run, 1);
     }},
    {"Reversed", [](RunResult& run) { std::reverse(run.step_times.begin() + 1, run.step_times.end()); }},
    {"Shuffled", [](RunResult& run) { shuffle_steps(run); }},
    {"ShuffledAndRounded",
     [](RunResult& run) {
       shuffle_steps(run);
       round_to(run, 5);
     }},
    {"NeighboursSwapped",
     [](RunResult& run) {
       for (size_t i = 1; i + 1 < run.step_times.size(); i += 2) std::swap(run.step_times[i], run.step_times[i + 1]);
     }},
    {"EverySecondStep",
     [](RunResult& run) {
       for (size_t i = 0; i < run.step_times.size() / 2; ++i) run.step_times[i] = run.step_times[2 * i];
       run.step_times.resize(run.step_times.size() / 2);
     }},
    {"Scaled",
     [](RunResult& run) {
       for (double& seconds : run.step_times) seconds *= 1.02;
     }},
    {"Shifted",
     [](RunResult& run) {
       for (double& seconds : run.step_times) seconds += 0.03;
     }},
    {"SlightNoise",
     [](RunResult& run) {
       std::mt19937_64 random(9);
       for (double& seconds : run.step_times) seconds *= 1 + 5e-5 * std::normal_distribution<double>()(random);
     }},
};

class Copies : public ::testing::TestWithParam<Disguise> {
 protected:
  static LoadedRun disguised(const std::string& path, uint64_t seed) {
    LoadedRun run = noisy_run(path, Platform::nvd, Framework::nemo, 1, seed);
    GetParam().change(run.result);
    run.result.training_config.max_steps.reset();
    return again(run);
  }
};

TEST_P(Copies, UnderADisguiseCountOnce) {
  const std::vector<LoadedRun> files = {noisy_run("a_r1.json", Platform::nvd, Framework::nemo, 1, 1),
                                        disguised("a_r2.json", 1),
                                        noisy_run("a_r3.json", Platform::nvd, Framework::nemo, 1, 2)};
  const auto contenders = gather_contenders(files);
  ASSERT_EQ(contenders.size(), 1u);
  ASSERT_EQ(contenders[0].runs.size(), 2u);
  EXPECT_EQ(contenders[0].runs[0].path, "a_r1.json") << "the longer, less rounded one counts";
  EXPECT_EQ(contenders[0].copies, std::vector<std::string>{"a_r2.json of a_r1.json"});
}

TEST_P(Copies, UnderADisguiseAreNoOtherSide) {
  const Contender original{"A", "a", {noisy_run("a.json", Platform::nvd, Framework::nemo, 1, 1)}, {}};
  const Contender copy{"B", "b", {disguised("b.json", 1)}, {}};
  EXPECT_EQ(find_same_measurements(original, copy).size(), 1u);
  EXPECT_EQ(find_same_measurements(copy, original).size(), 1u);
}

TEST_P(Copies, AnotherRunUnderTheSameChangeIsNone) {
  for (uint64_t seed = 1; seed < 50; ++seed) {
    const Contender one{"A", "a", {noisy_run("a.json", Platform::nvd, Framework::nemo, 1, 100)}, {}};
    const Contender other{"B", "b", {disguised("b.json", seed)}, {}};
    EXPECT_TRUE(find_same_measurements(one, other).empty()) << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Copies, ::testing::ValuesIn(k_disguises),
                         [](const auto& each) { return std::string(each.param.name); });

// Of logs that print so few digits that two runs agree at most steps nothing can be said.
TEST(CoarseLogs, AgreeWithoutBeingCopies) {
  for (const int places : {1, 2, 3})
    for (uint64_t seed = 1; seed < 50; ++seed) {
      Contender one{"A", "a", {noisy_run("a.json", Platform::nvd, Framework::nemo, 1, 100)}, {}};
      Contender other{"B", "b", {noisy_run("b.json", Platform::nvd, Framework::nemo, 1, seed)}, {}};
      round_to(one.runs[0].result, places), round_to(other.runs[0].result, places);
      EXPECT_TRUE(find_same_measurements(one, other).empty()) << places << " " << seed;
    }
}

// Sequences that grow, or every tenth step with a checkpoint: a pattern that every run shows, to the last digit
// printed.
TEST(CoarseLogs, ThatShowOnePatternAreNoCopies) {
  const auto patterned = [](const char* path, uint64_t seed, auto pattern) {
    LoadedRun run = noisy_run(path, Platform::nvd, Framework::nemo, 1, seed);
    for (size_t i = 0; i < run.result.step_times.size(); ++i) run.result.step_times[i] = pattern(i);
    round_to(run.result, 1);
    return Contender{"", "", {run}, {}};
  };
  const auto ramp = [](size_t i) { return 1 + 0.1 * static_cast<double>(i / 2); };
  const auto checkpoints = [](size_t i) { return i % 10 == 0 ? 5.0 : 1.0 + 0.1 * static_cast<double>(i / 30); };
  EXPECT_FALSE(is_copy(
      patterned("a", 1, ramp).first(), trace_steps(patterned("a", 1, ramp).first().step_times),
      [&] {
        RunResult other = patterned("b", 2, ramp).first();
        other.step_times.pop_back();
        return other;
      }(),
      trace_steps(patterned("b", 2, ramp).first().step_times)));
  EXPECT_EQ(trace_steps(patterned("a", 1, checkpoints).first().step_times).variation, 0);
}

TEST(Copies, WithEachStepTwiceCountOnce) {
  LoadedRun twice = noisy_run("a_r2.json", Platform::nvd, Framework::nemo, 1, 1);
  std::vector<double> times;
  for (const double seconds : twice.result.step_times) times.insert(times.end(), {seconds, seconds});
  twice.result.step_times = times;
  const auto contenders = gather_contenders({noisy_run("a_r1.json", Platform::nvd, Framework::nemo, 1, 1), twice});
  ASSERT_EQ(contenders.size(), 1u);
  EXPECT_EQ(contenders[0].copies, std::vector<std::string>{"a_r2.json of a_r1.json"});
}

// A log without times: the series holds a NaN for each step.
TEST(HonestRuns, WithoutStepTimesAreNoCopies) {
  const auto timeless = [](uint64_t seed) {
    LoadedRun run = noisy_run(fmt::format("a_r{}.json", seed), Platform::nvd, Framework::nemo, 1, seed);
    std::fill(run.result.step_times.begin(), run.result.step_times.end(), std::nan(""));
    for (double& loss : run.result.loss_values) loss += 1e-3 * static_cast<double>(seed);
    return run;
  };
  EXPECT_NE(measurement_key(timeless(1).result), measurement_key(timeless(2).result));
  EXPECT_EQ(measurement_key(timeless(1).result), measurement_key(timeless(1).result));
  const auto contenders = gather_contenders({timeless(1), timeless(2)});
  ASSERT_EQ(contenders.size(), 1u);
  EXPECT_EQ(contenders[0].runs.size(), 2u);
  LoadedRun gaps = noisy_run("a", Platform::nvd, Framework::nemo, 1, 1), shuffled = gaps;
  for (size_t i = 5; i < 30; ++i) gaps.result.step_times[i] = std::nan("");
  shuffled = gaps;
  shuffle_steps(shuffled.result);
  EXPECT_EQ(measurement_key(gaps.result), measurement_key(shuffled.result));
}

// A log as each of its ranks writes it: the same stamps and losses, times that differ by the ranks' own clocks.
LoadedRun with_stamps(LoadedRun run, double start, double tick) {
  double now = start;
  run.result.reported.emplace().unix_time.emplace();
  for (const double seconds : run.result.step_times)
    run.result.reported->unix_time->push_back(std::floor((now += seconds) / tick) * tick);
  return run;
}

bool are_copies(const LoadedRun& a, const LoadedRun& b) {
  return is_copy(a.result, trace_steps(a.result.step_times), b.result, trace_steps(b.result.step_times));
}

TEST(TimeStamps, OfOneRunShowLogsOfSeveralRanks) {
  const LoadedRun one = with_stamps(noisy_run("a", Platform::nvd, Framework::nemo, 3, 1), 1.77e9, 1);
  LoadedRun rank = one;
  std::mt19937_64 random(5);
  for (double& seconds : rank.result.step_times) seconds *= 1 + 6e-4 * std::normal_distribution<double>()(random);
  EXPECT_TRUE(are_copies(one, rank));
  LoadedRun other = rank;
  for (double& loss : other.result.loss_values) loss += 1e-3;
  EXPECT_FALSE(are_copies(one, other)) << "whole seconds are no proof without the losses";
  LoadedRun together = noisy_run("b", Platform::nvd, Framework::nemo, 3, 2);
  together.result.reported = one.result.reported;
  EXPECT_FALSE(are_copies(one, together)) << "jobs of one seed that started in the same second";
  LoadedRun exact = one;
  exact.result.reported = other.result.reported = with_stamps(one, 1.77e9, 1e-3).result.reported;
  EXPECT_TRUE(are_copies(exact, other)) << "no two runs share milliseconds";
}

TEST(TimeStamps, ShowALogOfMeans) {
  const LoadedRun one = with_stamps(noisy_run("a", Platform::nvd, Framework::nemo, 3, 1), 1.77e9, 1);
  LoadedRun means = one;
  RunResult& run = means.result;
  run.steps.emplace().numbers.emplace();
  for (size_t i = 0; i < 30; ++i) {
    run.step_times[i] = (run.step_times[2 * i] + run.step_times[2 * i + 1]) / 2;
    run.loss_values[i] = run.loss_values[2 * i + 1];
    (*run.reported->unix_time)[i] = (*run.reported->unix_time)[2 * i + 1];
    run.steps->numbers->push_back(static_cast<int64_t>(2 * i + 2));
  }
  run.step_times.resize(30), run.loss_values.resize(30), run.reported->unix_time->resize(30);
  EXPECT_TRUE(are_copies(one, means));
}

// Work that differs from step to step in the same way in every run: documents of the same order, a pattern of steps.
TEST(HonestRuns, OfOneRhythmAreNoCopies) {
  const auto run_of = [](uint64_t seed, auto work) {
    LoadedRun run = noisy_run("a", Platform::nvd, Framework::nemo, 1, seed);
    for (size_t i = 1; i < run.result.step_times.size(); ++i) run.result.step_times[i] *= work(i);
    return run;
  };
  const auto documents = [](size_t i) { return 1 + 0.2 * std::sin(static_cast<double>(i * i)); };
  const auto pattern = [](size_t i) { return i % 4 == 0 ? 1.05 : i % 4 == 1 ? 1.02 : 1.0; };
  for (uint64_t seed = 1; seed < 30; ++seed) {
    EXPECT_FALSE(are_copies(run_of(100, documents), run_of(seed, documents))) << seed;
    EXPECT_FALSE(are_copies(run_of(100, pattern), run_of(seed, pattern))) << seed;
  }
  LoadedRun scaled = sample_run("a", Platform::nvd, Framework::nemo, 1);  // a pattern, and hardly noise
  for (double& seconds : scaled.result.step_times) seconds = 1.01 * seconds + 0.001;
  EXPECT_TRUE(are_copies(sample_run("a", Platform::nvd, Framework::nemo, 1), scaled));
}

}  // namespace
}  // namespace tprimat::results
