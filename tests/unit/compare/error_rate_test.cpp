#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compare/verdict.h"
#include "unit/compare/sample_runs.h"

namespace tprimat {
namespace {

// Steps of `mean` seconds with 5 % of noise that remembers: a first-order process. `offset` is the run's own luck.
struct Noise {
  size_t steps;
  double memory;
  double between_runs = 0;
};

Contender draw_contender(double mean, size_t runs, const Noise& noise, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Contender contender;
  for (size_t k = 0; k < runs; ++k) {
    LoadedRun run = sample_run("", Platform::cpu, Framework::native, mean, noise.steps);
    const double luck = 1 + noise.between_runs * normal(random);
    double state = normal(random);
    for (double& seconds : run.result.step_times) {
      seconds = mean * luck * (1 + 0.05 * state);
      state = noise.memory * state + std::sqrt(1 - noise.memory * noise.memory) * normal(random);
    }
    run.result.warmup.steps_excluded = 1;
    contender.runs.push_back(std::move(run));
  }
  return contender;
}

// Share of 200 pairs of which one side is declared faster, when the subject's true speed is `speed`.
double share_of_winners(double speed, size_t runs, const Noise& noise) {
  constexpr int k_pairs = 200;
  std::mt19937_64 random(7);
  int winners = 0;
  for (int i = 0; i < k_pairs; ++i) {
    const Contender reference = draw_contender(1, runs, noise, random);
    const Contender subject = draw_contender(1 / speed, runs, noise, random);
    const Verdict verdict = judge(estimate_ratio(reference, subject), 0.01);
    winners += verdict == Verdict::faster || verdict == Verdict::slower;
  }
  return static_cast<double>(winners) / k_pairs;
}

TEST(ErrorRate, EqualSpeedsSeldomHaveAWinner) {
  EXPECT_LE(share_of_winners(1, 1, {.steps = 30, .memory = 0}), 0.05);
  EXPECT_LE(share_of_winners(1, 1, {.steps = 30, .memory = 0.6}), 0.05);
  EXPECT_LE(share_of_winners(1, 1, {.steps = 30, .memory = 0.8}), 0.05);
  EXPECT_LE(share_of_winners(1, 1, {.steps = 200, .memory = 0.8}), 0.05);
  EXPECT_LE(share_of_winners(1, 3, {.steps = 30, .memory = 0.6}), 0.05);
  EXPECT_LE(share_of_winners(1, 3, {.steps = 30, .memory = 0.6, .between_runs = 0.02}), 0.05);
}

TEST(ErrorRate, AFivePercentDifferenceIsFound) {
  EXPECT_GE(share_of_winners(1.05, 1, {.steps = 200, .memory = 0}), 0.95);
  EXPECT_GE(share_of_winners(1.05, 3, {.steps = 100, .memory = 0.3}), 0.9);
}

}  // namespace
}  // namespace tprimat
