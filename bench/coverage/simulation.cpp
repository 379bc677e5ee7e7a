#include "simulation.h"

#include <algorithm>
#include <cmath>

#include "stats/log_ratio.h"

namespace tprimat::simulation {
namespace {

constexpr double k_slow = 0.3, k_margin = 0.01;

bool holds(const Interval& interval, double truth) { return interval.low <= truth && truth <= interval.high; }

bool is_slow_next(const Scenario& scenario, bool slow, double chance) {
  if (scenario.slow_stay <= 0) return chance < scenario.slow_share;
  const double begin = scenario.slow_share * (1 - scenario.slow_stay) / (1 - scenario.slow_share);
  return chance < (slow ? scenario.slow_stay : begin);
}

std::vector<results::RateEvidence> draw_contenders(const Scenario& scenario, size_t count, double speed,
                                                   std::mt19937_64& random) {
  std::vector<results::RateEvidence> contenders;
  for (size_t i = 0; i < count; ++i) contenders.push_back(draw_side(scenario, i < count / 2 ? 1 : speed, random));
  return contenders;
}

// One comparison: p-values of all pairs, and which of them truly differ.
struct Family {
  std::vector<double> p_values;
  std::vector<bool> differs;
};

Family test_all_pairs(const std::vector<results::RateEvidence>& contenders, double speed) {
  Family family;
  for (size_t a = 0; a < contenders.size(); ++a)
    for (size_t b = a + 1; b < contenders.size(); ++b) {
      family.p_values.push_back(p_value_beyond(*measure_ratio(contenders[a], contenders[b]), k_margin));
      family.differs.push_back(speed != 1 && (a < contenders.size() / 2) != (b < contenders.size() / 2));
    }
  return family;
}

// Shares of the discoveries that are false, and of the differences that are discovered.
struct Tally {
  double false_share = 0, found = 0;
};
Tally count_discoveries(const std::vector<double>& p_values, const std::vector<bool>& differs) {
  double winners = 0, wrong = 0, differences = 0;
  for (size_t i = 0; i < p_values.size(); ++i) {
    differences += differs[i];
    if (p_values[i] > 0.05) continue;
    ++winners;
    wrong += !differs[i];
  }
  return {winners > 0 ? wrong / winners : 0, differences > 0 ? (winners - wrong) / differences : 0};
}

}  // namespace

std::vector<double> draw_run(const Scenario& scenario, double mean, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const double n = static_cast<double>(scenario.steps), fresh = std::sqrt(1 - scenario.memory * scenario.memory);
  const double luck = 1 + scenario.run_spread * normal(random);
  double state = normal(random);
  bool slow = uniform(random) < scenario.slow_share;
  std::vector<double> times;
  for (size_t i = 0; i < scenario.steps; ++i) {
    const double trend = scenario.drift * ((static_cast<double>(i) + 0.5) / n - 0.5);
    const double regime = 1 + k_slow * ((slow ? 1 : 0) - scenario.slow_share);
    times.push_back(mean * luck * (regime + trend + scenario.noise * state));
    state = scenario.memory * state + fresh * normal(random);
    slow = is_slow_next(scenario, slow, uniform(random));
  }
  return times;
}

results::RateEvidence draw_side(const Scenario& scenario, double speed, std::mt19937_64& random) {
  results::RateEvidence evidence{speed, {}, 1};
  for (size_t k = 0; k < scenario.runs; ++k)
    evidence.step_times.push_back(*estimate_mean(draw_run(scenario, 1 / speed, random)));
  return evidence;
}

Interval interval_of_product(const std::vector<double>& values) { return positive_interval(*estimate_mean(values)); }

Coverage cover_mean(const Scenario& scenario, IntervalMethod method, int rounds, uint64_t seed) {
  std::mt19937_64 random(seed);
  Coverage coverage;
  for (int i = 0; i < rounds; ++i) {
    const Interval interval = method(draw_run(scenario, 1, random));
    coverage.share += holds(interval, 1);
    coverage.half_width += (interval.high - interval.low) / 2;
  }
  return {coverage.share / rounds, coverage.half_width / rounds};
}

PairRates judge_pairs(const Scenario& scenario, double speed, int rounds, uint64_t seed) {
  std::mt19937_64 random(seed);
  Scenario other = scenario;
  if (scenario.other_runs > 0) other.runs = scenario.other_runs;
  PairRates rates;
  for (int i = 0; i < rounds; ++i) {
    const results::RateEvidence reference = draw_side(scenario, 1, random), subject = draw_side(other, speed, random);
    const Estimate ratio = results::to_estimate(*measure_ratio(reference, subject));
    const results::Verdict verdict = results::judge(ratio, k_margin);
    rates.coverage += holds({*ratio.low, *ratio.high}, speed) / static_cast<double>(rounds);
    rates.faster += (verdict == results::Verdict::faster) / static_cast<double>(rounds);
    rates.slower += (verdict == results::Verdict::slower) / static_cast<double>(rounds);
    rates.same += (verdict == results::Verdict::same) / static_cast<double>(rounds);
    rates.half_width += std::log(*ratio.high / *ratio.low) / 2 / rounds;
  }
  return rates;
}

Discoveries discover(const Scenario& scenario, size_t contenders, double speed, int rounds) {
  std::mt19937_64 random(1);
  Discoveries all;
  for (int i = 0; i < rounds; ++i) {
    const Family family = test_all_pairs(draw_contenders(scenario, contenders, speed, random), speed);
    const Tally adjusted = count_discoveries(adjust_p_values(family.p_values), family.differs);
    all.false_share += adjusted.false_share / rounds;
    all.found += adjusted.found / rounds;
    all.false_share_unadjusted += count_discoveries(family.p_values, family.differs).false_share / rounds;
  }
  return all;
}

// 4.3 standard errors of a binomial share, and one trial for the steps it comes in.
double lower_limit(double p, int rounds) { return p - 4.3 * std::sqrt(p * (1 - p) / rounds) - 1.0 / rounds; }
double upper_limit(double p, int rounds) { return p + 4.3 * std::sqrt(p * (1 - p) / rounds) + 1.0 / rounds; }

}  // namespace tprimat::simulation
