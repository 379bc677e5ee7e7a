#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "result/run_result.h"

namespace tprimat::results {

// What a log reports: ascending steps, counted from 1, and finite values.
struct CurvePoint {
  int64_t step = 0;
  double value = 0;
};
using Curve = std::vector<CurvePoint>;

// Of a series of the run. A step that was trained again counts as it was the last time.
Curve curve_by_step(const RunResult& run, const std::vector<double>& values);

struct SeriesGap {
  int64_t step = 0;
  double reference = 0, subject = 0;
  double allowed = 0;  // of a loss: how far the two may lie apart
};

// `compared` is how many points were: 0 says nothing of the two.
struct SeriesComparison {
  size_t compared = 0;
  std::optional<SeriesGap> gap;
};

// Where both report a step; one step of offset is allowed if it compares as many points within a tenth, because some
// trainers log the rate before and some after the update. Where more than 5 % of the points differ by more than 2 % of
// the peak, the gap is the widest.
SeriesComparison compare_learning_rates(const Curve& reference, const Curve& subject);

// The curves of one participant's runs.
using Curves = std::vector<Curve>;

// At the steps that the sparsest curve reports among those that all have passed, each curve's newest value since the
// one before. Means over a tenth of these points (1 to 20) that end at a quarter, a half, three quarters and the end,
// and over the runs of a side: each is a point compared. They disagree where they differ by more than three standard
// errors, of steps and of runs, and by more than `tolerance` of the larger; the curves do when the end or two of the
// points disagree. Without a stated tolerance it is 5 %; where both sides have three runs, which then tell how much a
// curve varies, 1 %. `step` is where the last disagreeing window ends. Nothing is compared where there are fewer than
// five points.
SeriesComparison compare_losses(const Curves& reference, const Curves& subject,
                                const std::optional<double>& tolerance = std::nullopt);

// Where the curve, in means over a tenth of its steps, ends more than a tenth above its lowest and three standard
// errors: the step and loss of the lowest (reference), and the loss at the end (subject). Nothing for fewer than twenty
// points.
std::optional<SeriesGap> find_loss_divergence(const Curve& losses);

// Below this no natural text's loss goes, in nats per token; a curve that starts above 1 and ends here has memorised
// its data.
inline constexpr double k_collapsed_loss = 0.1;

// Mean of the last tenth when the curve has collapsed.
std::optional<double> find_loss_collapse(const Curve& losses);

// Mean of the last tenth where at least 50 steps left the model no better than one that gives each token of its
// vocabulary the same probability, whose loss is ln(vocabulary).
std::optional<double> find_loss_of_guessing(const Curve& losses, int64_t vocabulary);

}  // namespace tprimat::results
