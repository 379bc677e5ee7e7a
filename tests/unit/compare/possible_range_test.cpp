#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compare/compare_runs.h"
#include "compare/contender.h"
#include "compare/gates.h"
#include "compare/verdict.h"
#include "unit/compare/sample_runs.h"

namespace tprimat::results {
namespace {

// Runs as ill-natured as files hold them: few or noisy steps, memory between steps, repetitions that disagree by
// factors, a peak just above the rate, predictions far off, a run without variation.
class RandomRuns {
 public:
  explicit RandomRuns(uint64_t seed) : random_(seed) {}

  std::vector<LoadedRun> draw() {
    std::vector<LoadedRun> runs;
    const auto sides = static_cast<size_t>(pick(1, 3));
    for (size_t side = 0; side < sides; ++side) {
      const auto repetitions = static_cast<size_t>(pick(1, 4));
      for (size_t k = 1; k <= repetitions; ++k) runs.push_back(draw_run(side, k));
    }
    return runs;
  }

 private:
  double pick(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }
  bool chance(double share) { return pick(0, 1) < share; }
  double factor(double decades) { return std::pow(10, pick(-decades, decades)); }

  LoadedRun draw_run(size_t side, size_t repetition) {
    RunResult run =
        sample_facts(side % 2 == 0 ? Platform::nvd : Platform::amd, side % 2 == 0 ? Framework::nemo : Framework::prim);
    const double noise = chance(0.2) ? 0 : std::pow(10, pick(-4, 0.5)), memory = pick(0, 0.95), seconds = factor(2);
    double state = 0;
    for (auto steps = static_cast<int>(pick(2, 40)); steps > 0; --steps) {
      state = memory * state + noise * std::normal_distribution<double>()(random_);
      run.step_times.push_back(seconds * std::exp(state));
      run.loss_values.push_back(pick(0, 12));
    }
    run.memory_metrics = {};
    run.memory_metrics.peak_memory_allocated_gb = chance(0.1) ? 0 : pick(0, 80);
    run.memory_metrics.peak_device_used_gb = pick(0, 80);
    run.gpu_info.total_memory_gb = 80;
    run.prediction = Prediction{};
    run.prediction->step_time_seconds = seconds * factor(1.5);
    run.prediction->memory_gb = 40 * factor(1);
    TelemetrySummary sensor;
    sensor.source = "nvml", sensor.mean_power_watts = pick(0, 8000), sensor.energy_joules = factor(5);
    sensor.energy_valid = true;
    run.telemetry.push_back(sensor);
    summarise_run(run, {});
    const double rate = run.derived.tflops_per_gpu ? run.derived.tflops_per_gpu->value * 1e12 : 1e15;
    const PeakInfo peak{.id = "config:bf16", .flops_per_second = rate * pick(0.98, 3), .source = "drawn"};
    summarise_run(run, {.peak = peak, .usd_per_hour = factor(2)});
    return {fmt::format("side{}_r{}.json", side, repetition), run};
  }

  std::mt19937_64 random_;
};

void expect_possible(const Estimate& estimate, const PossibleRange& range, std::string_view what) {
  ASSERT_EQ(estimate.low.has_value(), estimate.high.has_value()) << what;
  if (!estimate.low) return;
  const double last_bits = 1e-9 * std::fabs(estimate.value);
  EXPECT_GE(*estimate.low, range.least) << what;
  EXPECT_LE(*estimate.high, range.most) << what;
  EXPECT_LE(*estimate.low, estimate.value + last_bits) << what;
  EXPECT_GE(*estimate.high, estimate.value - last_bits) << what;
}

void expect_possible_changes(const ModelGroup& group, const Pair& pair) {
  if (pair.ratio) expect_possible(*pair.ratio, {}, "ratio");
  for (const Metric& metric : metrics()) {
    const Change change = measure_change(group, pair, metric);
    if (change.share) {
      expect_possible(*change.share, {-1}, metric.key);
      EXPECT_GE(change.share->value, -1) << metric.key;
    }
    const auto& range = metric.range;
    if (change.difference && change.after->value <= range.most && change.before->value <= range.most)
      expect_possible(*change.difference, {range.least - range.most, range.most - range.least}, metric.key);
  }
}

TEST(PossibleRanges, HoldForAllFiguresOfRandomRuns) {
  size_t intervals = 0, cut = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Comparison comparison = compare_runs({RandomRuns(seed).draw(), {}}, {});
    for (const ModelGroup& group : comparison.groups) {
      for (const Contender& contender : group.contenders)
        for (const Metric& metric : metrics())
          if (const auto figure = read_figure(contender, metric)) {
            expect_possible(*figure, metric.range, fmt::format("{} of seed {}", metric.key, seed));
            if (metric.format == MetricFormat::gigabytes) expect_possible(*figure, {0, 80 * (1 + 1e-9)}, metric.key);
            intervals += figure->low.has_value();
            cut += figure->high == metric.range.most || figure->low == metric.range.least;
          }
      for (const Pair& pair : group.pairs) expect_possible_changes(group, pair);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(intervals, 3000u);
  EXPECT_GT(cut, 20u) << "the runs drawn are too tame to test anything";
}

// Two runs give the widest of Student's intervals: 12.7 standard errors.
TEST(PossibleRanges, APredictionIsNeverMoreThanAllTooSmall) {
  std::vector<Estimate> errors{{-0.6, {}, {}}, {0.2, {}, {}}};
  const auto figure = combine_runs(errors, *find_metric("memory_prediction_error"));
  ASSERT_TRUE(figure && figure->low);
  EXPECT_NEAR(figure->value, -0.2, 1e-12);
  EXPECT_GT(*figure->low, -1);
  EXPECT_GT(*figure->high, 0.2);
}

TEST(PossibleRanges, AVariationIsNeverNegative) {
  std::vector<Estimate> shares{{0, {}, {}}, {0.1, {}, {}}};
  EXPECT_EQ(combine_runs(shares, *find_metric("step_time_cv"))->low, 0);
}

TEST(PossibleRanges, ASignedFigureHasNoPercentageChange) {
  EXPECT_FALSE(estimate_ratio_by_figures({0.1, {}, {}}, {-0.0115, {}, {}})) << "-111.5 %";
  EXPECT_TRUE(estimate_ratio_by_figures({0.1, {}, {}}, {0.0, {}, {}})) << "-100 %";
  EXPECT_FALSE(has_percentages(*find_metric("memory_prediction_error")));
  EXPECT_TRUE(has_percentages(*find_metric("final_loss")));
}

}  // namespace
}  // namespace tprimat::results
