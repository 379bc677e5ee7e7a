#include "block_bootstrap.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/check.h"
#include "stats/descriptive.h"
#include "stats/distribution.h"

namespace tprimat {
namespace {

double autocovariance(std::span<const double> values, double centre, size_t lag) {
  double sum = 0;
  for (size_t i = 0; i + lag < values.size(); ++i) sum += (values[i] - centre) * (values[i + lag] - centre);
  return sum / static_cast<double>(values.size());
}

// The smallest lag after which five correlations in a row are within the noise, 2·sqrt(log10 n / n); nothing beyond
// max_lag.
size_t memory_length(const std::vector<double>& covariances, size_t count, size_t max_lag) {
  constexpr size_t k_quiet_lags = 5;
  const double n = static_cast<double>(count);
  const double noise = 2 * std::sqrt(std::log10(n) / n);
  size_t quiet = 0;
  for (size_t lag = 1; lag < covariances.size(); ++lag) {
    quiet = std::fabs(covariances[lag] / covariances[0]) < noise ? quiet + 1 : 0;
    if (quiet == k_quiet_lags) return std::max<size_t>(1, lag - k_quiet_lags);
  }
  return max_lag;
}

// Trapezoid window of Politis and Romano (1995).
double flat_top(double t) { return t <= 0.5 ? 1.0 : std::max(0.0, 2 * (1 - t)); }

// Length of the blocks in which to resample a series so that its autocorrelation survives: the automatic rule of
// Politis and White (Econometric Reviews 23, 2004) for the circular block bootstrap, with the correction of Patton,
// Politis and White (2009). Between 1 and n/4, so that there are always at least four blocks; n^(1/3) bounds it from
// below for n of 27 and more, because a short series shows too little of its own memory. 1 for fewer than eight values.
size_t block_length(std::span<const double> values) {
  const size_t count = values.size();
  if (count < 8) return 1;
  const double n = static_cast<double>(count);
  const size_t most = count / 4;
  const size_t least = count < 27 ? 1 : std::min(most, static_cast<size_t>(std::cbrt(n)));
  const size_t max_lag = std::min(count - 1, static_cast<size_t>(std::ceil(std::sqrt(n))) + 5);
  const double centre = mean(values);
  std::vector<double> covariances;
  for (size_t lag = 0; lag <= max_lag; ++lag) covariances.push_back(autocovariance(values, centre, lag));
  if (covariances[0] <= 0) return least;

  const size_t reach = std::min(2 * memory_length(covariances, count, max_lag), max_lag);
  double spectrum = covariances[0], slope = 0;  // g(0) and G of the paper
  for (size_t lag = 1; lag <= reach; ++lag) {
    const double weighted = 2 * flat_top(static_cast<double>(lag) / static_cast<double>(reach)) * covariances[lag];
    spectrum += weighted;
    slope += static_cast<double>(lag) * weighted;
  }
  if (spectrum <= 0) return least;
  const double length = std::cbrt(2 * slope * slope / (4.0 / 3.0 * spectrum * spectrum) * n);
  return std::clamp(static_cast<size_t>(std::ceil(std::min(length, n))), least, most);
}

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
  // (Biometrics Bulletin 2, 1946) of the spread between runs and that within them, plus one; few runs that differ are
  // worth little, however many steps they have.
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
