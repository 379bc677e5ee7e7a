#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tprimat {

struct ChangePointOptions {
  double min_relative_change = 0.01;  // between the medians of neighbouring segments; a smaller shift is none
  size_t min_segment = 3;             // values; fewer are outliers
};

struct LevelShift {
  size_t at = 0;                 // first value of the new level
  double before = 0, after = 0;  // medians of the two segments
};

// Where a series of levels shifts, any number of times: least squares over all segmentations, a price of 3·σ²·log n per
// shift, exact by dynamic programming with pruning (PELT: Killick, Fearnhead and Eckley, JASA 107, 2012). σ
// is 1.4826·MAD of the differences of neighbours / √2, which shifts do not widen; it is inflated for the correlation
// that the residuals of a first segmentation show. Values are drawn in to 3σ around the running median of five, which
// keeps edges and hides up to two strange values in a row. Shifts below min_relative_change are merged, the smallest
// first.
std::vector<LevelShift> find_level_shifts(std::span<const double> values, const ChangePointOptions& options = {});

// Bounds of the search, and what counts as a change.
struct SteadyStateOptions {
  size_t max_excluded = 200;          // never call more steps than this warm-up, nor more than half of the series
  double min_relative_change = 0.01;  // a smaller shift is negligible and not warm-up
};

// Where a series of step times begins to be steady.
struct SteadyState {
  size_t excluded = 0;  // steps at the start that are warm-up; the first step always is (0 only for an empty series)
  bool steady = true;   // false: a shift remains after the bound, so the rest is not steady
  std::string reason;   // a sentence with the numbers
};

// Change points by binary segmentation from the front (after Barrett et al., OOPSLA 2017, arXiv 1602.00602): the
// two-segment least-squares fit that gains most is accepted when the gain exceeds a BIC penalty of 3·σ²·log n, inflated
// for autocorrelation, and the segments' medians differ by min_relative_change. Values are first drawn in to ±10 robust
// standard deviations around the later half's median, so that one slow step cannot look like a regime. σ is the later
// half's 1.4826·MAD. Never leaves fewer than half of the steps.
SteadyState find_steady_state(std::span<const double> step_times, const SteadyStateOptions& options = {});

}  // namespace tprimat
