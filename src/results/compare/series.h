#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "result/run_result.h"

namespace tprimat::results {

// A logged series: ascending steps, counted from 1, and finite values.
struct CurvePoint {
  int64_t step = 0;
  double value = 0;
};
using Curve = std::vector<CurvePoint>;

// Of a series of the run. Of a step that was repeated the last value counts.
Curve curve_by_step(const RunResult& run, const std::vector<double>& values);

struct SeriesGap {
  int64_t step = 0;
  double reference = 0, subject = 0;
  double allowed = 0;  // of a loss: the accepted difference
};

// `compared` is the number of compared points; with 0 there is no conclusion.
struct SeriesComparison {
  size_t compared = 0;
  std::optional<SeriesGap> gap;
};

// Compares at common steps; an offset of one step is allowed if it loses at most a tenth of the points, because some
// trainers log the rate before and some after the update. Where more than 5 % of the points differ by more than 2 % of
// the peak, the gap is the widest.
SeriesComparison compare_learning_rates(const Curve& reference, const Curve& subject);

// The curves of one participant's runs.
using Curves = std::vector<Curve>;

// At the steps that the sparsest curve reports among those that all have passed, each curve's newest value since the
// one before. Means over a tenth of these points (1 to 20) that end at a quarter, a half, three quarters and the end,
// and over the runs of a side: each is a point compared. They disagree where they differ by more than three standard
// errors, of steps and of runs, and by more than `tolerance` of the larger; the curves do when the end or two of the
// points disagree. Without a stated tolerance it is 5 %; if both sides have three runs, which show how much a curve
// varies, 1 %. `step` is where the last disagreeing window ends. Nothing is compared with fewer than five points.
SeriesComparison compare_losses(const Curves& reference, const Curves& subject,
                                const std::optional<double>& tolerance = std::nullopt);

// If the curve, in means over a tenth of its steps, ends more than a tenth and three standard errors above its lowest:
// the step and loss of the lowest (reference), and the loss at the end (subject). Nothing otherwise, or for fewer than
// twenty points.
std::optional<SeriesGap> find_loss_divergence(const Curve& losses);

// No loss on natural text is below this, in nats per token; a curve that starts above 1 and ends here has memorised its
// data.
inline constexpr double k_collapsed_loss = 0.1;

// Mean of the last tenth if the curve has collapsed.
std::optional<double> find_loss_collapse(const Curve& losses);

// Mean of the last tenth if the model after at least 50 steps is no better than uniform guessing, whose loss is
// ln(vocabulary).
std::optional<double> find_loss_of_guessing(const Curve& losses, int64_t vocabulary);

}  // namespace tprimat::results
