#include "stats/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/check.h"
#include "stats/autocorrelation.h"
#include "stats/descriptive.h"
#include "stats/distribution.h"

namespace tprimat {
namespace {

// std::uniform_int_distribution differs between standard libraries; this does not. The bias is below 2^-32 for our
// sizes.
size_t draw_index(std::mt19937_64& random, size_t count) { return static_cast<size_t>((random() >> 32) * count >> 32); }

// Means of resampled copies of one series, in O(number of blocks) each thanks to prefix sums over the series laid out
// twice.
class BlockSampler {
 public:
  explicit BlockSampler(std::span<const double> values)
      : count_(values.size()), block_(block_length(values)), prefix_{0.0} {
    for (size_t i = 0; i < 2 * count_; ++i) prefix_.push_back(prefix_.back() + values[i % count_]);
    const double resampled = variance_of_mean(), modelled = first_order_variance(values);
    if (resampled > 0) stretch_ = std::max(1.0, std::sqrt(modelled / resampled));
  }

  double draw_mean(std::mt19937_64& random) const {
    double sum = 0;
    for (size_t done = 0; done < count_;) {
      const size_t length = std::min(block_, count_ - done);
      const size_t start = draw_index(random, count_);
      sum += prefix_[start + length] - prefix_[start];
      done += length;
    }
    return series_mean() + stretch_ * (sum / static_cast<double>(count_) - series_mean());
  }

  double series_mean() const { return prefix_[count_] / static_cast<double>(count_); }
  double independent_blocks() const { return static_cast<double>(count_) / static_cast<double>(block_); }

  // Of the series' mean: the variance of the means of all circular blocks, over the number of independent ones.
  double variance_of_mean() const {
    double squares = 0;
    for (size_t start = 0; start < count_; ++start) {
      const double deviation = (prefix_[start + block_] - prefix_[start]) / static_cast<double>(block_) - series_mean();
      squares += deviation * deviation;
    }
    return squares / static_cast<double>(count_) / independent_blocks();
  }

 private:
  // Few blocks of a short series that remembers show too little variance: their own means lie close together, and the
  // estimated memory is too short. What a first-order process of the same memory would have is the least we believe.
  double first_order_variance(std::span<const double> values) const {
    const double memory = first_order_memory(values);
    if (memory <= 0) return 0;
    const double deviation = stddev(values);
    return deviation * deviation / static_cast<double>(count_) * (1 + memory) / (1 - memory);
  }

  size_t count_, block_;
  double stretch_ = 1;  // of a draw's distance from the mean
  std::vector<double> prefix_;
};

class RunsSampler {
 public:
  explicit RunsSampler(const Runs& runs) {
    for (const auto& run : runs) samplers_.emplace_back(run);
  }

  double draw_mean(std::mt19937_64& random) const {
    double sum = 0;
    for (size_t i = 0; i < samplers_.size(); ++i)
      sum += samplers_[draw_index(random, samplers_.size())].draw_mean(random);
    return sum / static_cast<double>(samplers_.size());
  }

  // How many independent values the mean is worth. One run: its blocks. Several: Satterthwaite's degrees of freedom
  // (Biometrics 2, 1946) of the spread between runs and that within them, plus one; few runs that differ are worth
  // little, however many steps they have.
  double independent_units() const {
    if (samplers_.size() == 1) return samplers_.front().independent_blocks();
    const double n = static_cast<double>(samplers_.size());
    std::vector<double> means;
    double within = 0, blocks = 0;
    for (const BlockSampler& sampler : samplers_) {
      means.push_back(sampler.series_mean());
      within += sampler.variance_of_mean() / (n * n);
      blocks += std::max(1.0, sampler.independent_blocks() - 1);
    }
    const double between = stddev(means) * stddev(means) * (n - 1) / (n * n);
    const double doubt = between * between / (n - 1) + within * within / blocks;
    return doubt > 0 ? 1 + (between + within) * (between + within) / doubt : n;
  }

 private:
  std::vector<BlockSampler> samplers_;
};

bool can_resample(const Runs& runs) {
  return !runs.empty() &&
         std::all_of(runs.begin(), runs.end(), [](const auto& run) { return run.size() >= k_min_values_for_interval; });
}

// The plain percentile interval is too narrow by sqrt((n-1)/n) and by normal against t: Hesterberg's expansion mends
// both by reading the quantiles further out. Where fewer than ten draws lie that far out, the draws' deviation times
// the same factor serves.
Interval expanded_percentile(const std::vector<double>& draws, double units, double confidence) {
  const double n = std::max(units, 2.0);
  const double tail = (1 - confidence) / 2;
  const double reach = std::sqrt(n / (n - 1)) * student_t_quantile(tail, n - 1);  // in standard errors, negative
  const double probability = std::min(normal_cdf(reach), tail);
  constexpr double k_enough_draws = 10;
  if (probability * static_cast<double>(draws.size()) >= k_enough_draws)
    return {quantile(draws, probability), quantile(draws, 1 - probability)};
  const double centre = mean(draws), half_width = -reach * stddev(draws);
  return {centre - half_width, centre + half_width};
}

}  // namespace

std::optional<Interval> bootstrap_mean(std::span<const double> values, const BootstrapOptions& options) {
  return bootstrap_mean_of_runs({std::vector<double>(values.begin(), values.end())}, options);
}

std::optional<Interval> bootstrap_mean_of_runs(const Runs& runs, const BootstrapOptions& options) {
  if (!can_resample(runs)) return std::nullopt;
  CHECK(options.replicates >= 100 && options.confidence > 0 && options.confidence < 1);
  std::mt19937_64 random(options.seed);
  const RunsSampler sampler(runs);
  std::vector<double> draws;
  for (int i = 0; i < options.replicates; ++i) draws.push_back(sampler.draw_mean(random));
  return expanded_percentile(draws, sampler.independent_units(), options.confidence);
}

std::optional<Interval> bootstrap_ratio(const Runs& numerator, const Runs& denominator, double scale,
                                        const BootstrapOptions& options) {
  if (!can_resample(numerator) || !can_resample(denominator)) return std::nullopt;
  CHECK(options.replicates >= 100 && options.confidence > 0 && options.confidence < 1);
  std::mt19937_64 random(options.seed);
  const RunsSampler above(numerator), below(denominator);
  std::vector<double> draws;
  for (int i = 0; i < options.replicates; ++i) {
    const double top = above.draw_mean(random);
    draws.push_back(scale * top / below.draw_mean(random));
  }
  return expanded_percentile(draws, std::min(above.independent_units(), below.independent_units()), options.confidence);
}

}  // namespace tprimat
