#include "planner/training_outlook.h"

#include <gtest/gtest.h>

#include <cmath>

#include "planner_samples.h"

namespace tprimat::planner {
namespace {

constexpr double k_minute = 60, k_hour = 3600;

// Figures 3 to 5 of Daly 2006: checkpoints of 5 minutes, three times between failures.
TEST(Goodput, DalysIntervalIsThatOfHisPaper) {
  EXPECT_NEAR(daly_interval(5 * k_minute, 24 * k_hour) / k_minute, 117, 0.5);
  EXPECT_NEAR(daly_interval(5 * k_minute, 6 * k_hour) / k_minute, 57, 0.5);
  EXPECT_NEAR(daly_interval(5 * k_minute, 15 * k_minute) / k_minute, 9.1, 0.1);
}

TEST(Goodput, YoungsIntervalIsTheFirstOrder) {
  EXPECT_DOUBLE_EQ(young_interval(5 * k_minute, 24 * k_hour), 7200);
  EXPECT_NEAR(daly_interval(1, 1e9) / young_interval(1, 1e9), 1, 1e-4);
}

// The share that his model gives is greatest at his interval.
TEST(Goodput, DalysIntervalIsNearlyTheBest) {
  for (const double failure : {0.5 * k_hour, 3 * k_hour, 48 * k_hour}) {
    const double best = daly_interval(k_minute, failure);
    const double share = daly_share(best, k_minute, 10 * k_minute, failure);
    for (const double factor : {0.5, 0.8, 1.25, 2.0})
      EXPECT_LT(daly_share(factor * best, k_minute, 10 * k_minute, failure), share) << failure << " x " << factor;
  }
}

TEST(Goodput, NothingLostWhereNothingFails) { EXPECT_NEAR(daly_share(1e3, 1e-6, 0, 1e12), 1, 1e-6); }

// Checkpoints that take longer than the time between failures leave next to nothing, and still a figure.
TEST(Goodput, HopelessStorageIsAFigureToo) {
  Reliability reliability = published_reliability();
  reliability.storage_bandwidth = 1e6;
  const Goodput goodput = estimate_goodput(reliability, 16384, 5.7e12, 1);
  EXPECT_DOUBLE_EQ(goodput.interval_seconds, goodput.failure_seconds);
  EXPECT_GE(goodput.share, 0);
  EXPECT_LT(goodput.share, 1e-6);
}

TEST(Goodput, CheckpointsAreAStepApart) {
  const Reliability& published = published_reliability();
  const double best = estimate_goodput(published, 1 << 20, 1e9, 0).interval_seconds;
  EXPECT_LT(best, 2);
  EXPECT_EQ(estimate_goodput(published, 1 << 20, 1e9, 2).interval_seconds, 2);
}

// arXiv 2407.21783, section 3.3.4: 419 unexpected interruptions in 54 days, and more than 90 % effective time.
TEST(Goodput, Llama3) {
  const ModelSpec llama = find_counted_model("llama3.1_405b")->spec;
  EXPECT_NEAR(checkpoint_bytes(llama), 14 * 405.85e9, 14 * 0.01e9);
  const Goodput goodput = estimate_goodput(published_reliability(), 16384, checkpoint_bytes(llama), 5);
  EXPECT_NEAR(goodput.failure_seconds, 54 * 24 * k_hour / 419, 1e-6);
  EXPECT_GT(goodput.share, 0.90);
  EXPECT_LT(goodput.share, 0.95);
}

// Exact expected maxima of n standard normal draws (Teichroew 1956).
TEST(Goodput, ExpectedMaxima) {
  EXPECT_DOUBLE_EQ(expected_maximum(1), 0);
  EXPECT_NEAR(expected_maximum(2), 0.5642, 0.03);
  EXPECT_NEAR(expected_maximum(10), 1.5388, 0.01);
  EXPECT_NEAR(expected_maximum(100), 2.5076, 0.01);
  EXPECT_NEAR(expected_maximum(1000), 3.2414, 0.02);
}

TEST(Straggling, NoiseAndTheCalibratedShareExplainEachOther) {
  const Straggling calibrated = estimate_straggling(512, 0.003, {});
  EXPECT_NEAR(calibrated.share, 0.003 * 6, 1e-12);
  const Straggling noisy = estimate_straggling(512, 0.003, calibrated.node_noise);
  EXPECT_NEAR(noisy.share, calibrated.share, 1e-12);
  EXPECT_EQ(estimate_straggling(8, 0.003, 0.05).share, 0);  // one node waits for nobody
}

TEST(Straggling, NoiseScalesEveryTimeAlike) {
  const PlanRequest request = sample_request(64);
  const SearchOutcome before = search_layouts(request, built_in_parameters(), 3);
  SearchOutcome after = before;
  apply_node_noise(after, 64, 0.003, 0.02);
  const double factor = (1 + 0.02 * expected_maximum(8)) / (1 + 0.003 * 3);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(after.ranked[i].time.total(), factor * before.ranked[i].time.total(), 1e-9);
}

TrainingOutlook sample_outlook(const TrainingTerms& terms) {
  const PlanRequest request = sample_request(64);
  const SearchOutcome outcome = search_layouts(request, built_in_parameters(), 1);
  return foresee_training(outcome.ranked.front(), terms, {});
}

TEST(TrainingOutlook, CostAndEnergyAreGpuHoursTimesPriceAndPower) {
  TrainingTerms terms;
  terms.tokens = 15e12, terms.usd_per_gpu_hour = 2.5, terms.tdp_watts = 700;
  const TrainingOutlook outlook = sample_outlook(terms);
  const double gpu_hours = *outlook.days * 24 * 64;
  EXPECT_NEAR(*outlook.days, 15e12 / (outlook.tokens_per_second * outlook.goodput.share) / 86400, 1e-9);
  EXPECT_NEAR(*outlook.usd, 2.5 * gpu_hours, 1e-6);
  EXPECT_NEAR(*outlook.megawatt_hours, 700e-6 * gpu_hours, 1e-9);
}

TEST(TrainingOutlook, WhatIsNotKnownIsAbsent) {
  const TrainingOutlook outlook = sample_outlook({});
  EXPECT_FALSE(outlook.usd.has_value());
  EXPECT_FALSE(outlook.megawatt_hours.has_value());
}

}  // namespace
}  // namespace tprimat::planner
