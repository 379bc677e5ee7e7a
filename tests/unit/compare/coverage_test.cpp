#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "coverage/simulation.h"

// What docs/method.md promises, with few rounds and limits that chance does not cross: each test fails when the method
// gets clearly worse. bench_coverage shows the figures themselves.
namespace tprimat::simulation {
namespace {

constexpr int k_rounds = 500;

void expect_within(double share, double least, double most, const char* what) {
  EXPECT_GE(share, lower_limit(least, k_rounds)) << what;
  EXPECT_LE(share, upper_limit(most, k_rounds)) << what;
}

TEST(Coverage, OneRunsIntervalHoldsItsMean) {
  for (const size_t steps : {20, 50, 200, 500})
    for (const double memory : {0.0, 0.3, 0.6, 0.8, 0.9}) {
      const double share = cover_mean({.steps = steps, .memory = memory}, interval_of_product, k_rounds, 7).share;
      expect_within(share, memory > 0.8 && steps < 50 ? 0.91 : 0.93, 0.97, "mean of a run");
    }
}

TEST(Coverage, LongRunsAreNotPunished) {
  const Coverage found = cover_mean({.steps = 500}, interval_of_product, k_rounds, 3);
  EXPECT_LT(found.half_width, 1.25 * 1.96 * 0.05 / std::sqrt(500.0));
}

TEST(Coverage, DriftNeverMakesAnIntervalTooNarrow) {
  const double share =
      cover_mean({.steps = 100, .noise = 0.01, .memory = 0.6, .drift = 0.05}, interval_of_product, k_rounds, 7).share;
  EXPECT_GE(share, lower_limit(0.95, k_rounds));
}

TEST(Coverage, TwoSpeedsOfStepsAreNoTrap) {
  for (const double share : {0.1, 0.5}) {
    const Scenario scenario{.steps = 100, .noise = 0.01, .slow_share = share};
    expect_within(cover_mean(scenario, interval_of_product, k_rounds, 7).share, 0.93, 0.97, "bimodal");
  }
}

TEST(Coverage, PairsOfRepeatedRunsHoldTheRatioAndSeldomHaveAWinner) {
  for (const size_t runs : {2, 3, 5, 10})
    for (const double spread : {0.0, 0.01, 0.03}) {
      const PairRates rates =
          judge_pairs({.runs = runs, .steps = 50, .noise = 0.02, .memory = 0.6, .run_spread = spread}, 1, k_rounds, 7);
      expect_within(rates.coverage, 0.93, runs == 2 ? 0.99 : 0.97, "ratio");
      EXPECT_LE(rates.winners(), upper_limit(0.03, k_rounds));
    }
}

TEST(Coverage, UnequalNumbersOfRunsHoldTheRatio) {
  for (const auto& [few, many] : {std::pair<size_t, size_t>{1, 5}, {2, 10}, {3, 10}}) {
    const Scenario scenario{
        .runs = few, .steps = 50, .noise = 0.02, .memory = 0.6, .run_spread = 0.01, .other_runs = many};
    expect_within(judge_pairs(scenario, 1, k_rounds, 7).coverage, 0.93, 0.99, "unequal");
  }
}

TEST(Coverage, SingleRunsOfEqualSpeedSeldomHaveAWinnerUpToTheAssumedSpread) {
  for (const double spread : {0.0, 0.01, 0.02}) {
    const PairRates rates = judge_pairs({.steps = 100, .memory = 0.8, .run_spread = spread}, 1, k_rounds, 7);
    EXPECT_LE(rates.winners(), upper_limit(0.03, k_rounds)) << spread;
  }
}

TEST(Coverage, TwoPercentAreFoundByFiveRuns) {
  for (const double spread : {0.0, 0.003}) {
    const Scenario scenario{.runs = 5, .steps = 50, .noise = 0.01, .run_spread = spread};
    EXPECT_GE(judge_pairs(scenario, 1.02, k_rounds, 7).faster, lower_limit(0.95, k_rounds)) << spread;
  }
}

TEST(Coverage, SameIsNotSaidOfWhatDiffersByMoreThanTheMargin) {
  for (const size_t runs : {2, 3, 5, 10})
    for (const double spread : {0.0, 0.003, 0.01}) {
      const Scenario scenario{.runs = runs, .steps = 50, .noise = 0.01, .run_spread = spread};
      EXPECT_LE(judge_pairs(scenario, 1.0101, k_rounds, 7).same, upper_limit(0.03, k_rounds)) << runs << " " << spread;
    }
  EXPECT_GE(judge_pairs({.runs = 5, .steps = 100, .noise = 0.005}, 1, k_rounds, 7).same, 0.9) << "but of equals it is";
}

// A plan made from the true ratio and spread: with so many runs the verdict comes in about four rounds of five.
TEST(Coverage, PlannedRunsSettleThePair) {
  Scenario scenario{.runs = 3, .steps = 50, .noise = 0.01, .run_spread = 0.01};
  LogRatio ratio;
  ratio.numerator.runs = ratio.denominator.runs = scenario.runs;
  ratio.numerator.variance_of_run = ratio.denominator.variance_of_run = 0.01 * 0.01 * (1 + 1.0 / 50);
  for (const double speed : {1.025, 1.03, 1.0}) {
    ratio.value = std::log(speed);
    const auto more = more_runs_to_settle(ratio, {});
    ASSERT_TRUE(more) << speed;
    scenario.runs = 3 + *more;
    const PairRates rates = judge_pairs(scenario, speed, k_rounds, 7);
    expect_within(speed > 1 ? rates.faster : rates.same, 0.78, 0.88, "planned");
  }
}

TEST(Coverage, FewOfManyWinnersAreFalse) {
  const Scenario scenario{.runs = 5, .steps = 50, .noise = 0.01, .run_spread = 0.005};
  const Discoveries found = discover(scenario, 8, 1.05, 100);
  EXPECT_LE(found.false_share, 0.05);
  EXPECT_GE(found.found, 0.9);
}

}  // namespace
}  // namespace tprimat::simulation
