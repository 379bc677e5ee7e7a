#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tprimat {

// Point by point, NaNs left out; one step of offset is allowed, because some trainers log the rate before and some
// after the update. Where more than 5 % of the points differ by more than 2 % of the peak, the step (from 1) and the
// two values of the widest gap.
struct SeriesGap {
  size_t step = 0;
  double reference = 0, subject = 0;
  double allowed = 0;  // of a loss: how far the two may lie apart
};
std::optional<SeriesGap> find_learning_rate_gap(const std::vector<double>& reference,
                                                const std::vector<double>& subject);

// The curves of one participant's runs, a loss per step.
using Curves = std::vector<std::vector<double>>;

// Means over a tenth of the steps (1 to 20) that end at a quarter, a half, three quarters and the end, and over the
// runs of a side. They disagree where they differ by more than three standard errors, of steps and of runs, and by more
// than `tolerance` of the larger; the curves do when the end or two of the points disagree. Without a stated
// tolerance it is 5 %; where both sides have three runs, which then tell how much a curve varies, 1 %. `step` is where
// the last disagreeing window ends. Nothing for curves with fewer than five common points.
std::optional<SeriesGap> find_loss_gap(const Curves& reference, const Curves& subject,
                                       const std::optional<double>& tolerance = std::nullopt);

// Where the curve, in means over a tenth of its steps, ends more than a tenth above its lowest and three standard
// errors: the step and loss of the lowest (reference), and the loss at the end (subject). Nothing for fewer than twenty
// points.
std::optional<SeriesGap> find_loss_divergence(const std::vector<double>& losses);

// Below this no natural text's loss goes, in nats per token; a curve that starts above 1 and ends here has memorised
// its data.
inline constexpr double k_collapsed_loss = 0.1;

// Mean of the last tenth when the curve has collapsed.
std::optional<double> find_loss_collapse(const std::vector<double>& losses);

}  // namespace tprimat
