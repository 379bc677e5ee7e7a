#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "compare/verdict.h"

// Synthetic runs whose truth is known, and how often the intervals and verdicts of the product are right about it.
namespace tprimat::simulation {

// Step times of mean 1 (times the run's luck): a first-order process, on top of it what else is asked for.
struct Scenario {
  size_t runs = 1, steps = 100;  // a side
  double noise = 0.05;           // standard deviation of a step
  double memory = 0;             // correlation of neighbouring steps
  double run_spread = 0;         // standard deviation between runs
  double drift = 0;              // from the first step to the last
  double slow_share = 0;         // of steps that take 30 % longer
  double slow_stay = 0;          // chance that a slow step is followed by another; 0 is as slow_share
  size_t other_runs = 0;         // of the other side where it has another number
};

std::vector<double> draw_run(const Scenario& scenario, double mean, std::mt19937_64& random);
results::RateEvidence draw_side(const Scenario& scenario, double speed, std::mt19937_64& random);

// Of one run's mean, round by round: share of intervals that hold it and their mean half width.
struct Coverage {
  double share = 0, half_width = 0;
};
using IntervalMethod = Interval (*)(const std::vector<double>& values);
Interval interval_of_product(const std::vector<double>& values);
Coverage cover_mean(const Scenario& scenario, IntervalMethod method, int rounds, uint64_t seed);

// Of a pair whose subject is truly `speed` times as fast, judged with a smallest effect of 1 %.
struct PairRates {
  double coverage = 0, faster = 0, slower = 0, same = 0, half_width = 0;
  double winners() const { return faster + slower; }
};
PairRates judge_pairs(const Scenario& scenario, double speed, int rounds, uint64_t seed);

// Of a comparison of all pairs of `contenders`, of which the later half is `speed` times as fast: share of false
// winners among the winners (no winner: 0), on average, and share of true differences found.
struct Discoveries {
  double false_share = 0, found = 0, false_share_unadjusted = 0;
};
Discoveries discover(const Scenario& scenario, size_t contenders, double speed, int rounds);

// Bounds for the share of `rounds` trials that are true with probability p: chance crosses one of them once in 1e5
// times.
double lower_limit(double p, int rounds);
double upper_limit(double p, int rounds);

}  // namespace tprimat::simulation
