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
};
std::optional<SeriesGap> find_learning_rate_gap(const std::vector<double>& reference,
                                                const std::vector<double>& subject);

// Means over a tenth of the steps (1 to 20) that end at a quarter, a half, three quarters and the end. They disagree
// where they differ by more than 5 % of the reference and three standard errors; the curves do when the end or two of
// the points disagree. `step` is where the last disagreeing window ends. Nothing for curves with fewer than five common
// points.
std::optional<SeriesGap> find_loss_gap(const std::vector<double>& reference, const std::vector<double>& subject);

// Below this no natural text's loss goes, in nats per token; a curve that starts above 1 and ends here has memorised
// its data.
inline constexpr double k_collapsed_loss = 0.1;

// Mean of the last tenth when the curve has collapsed.
std::optional<double> find_loss_collapse(const std::vector<double>& losses);

}  // namespace tprimat
