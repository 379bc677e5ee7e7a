#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tprimat {

// Bounds of the search, and what counts as a change.
struct SteadyStateOptions {
  size_t max_excluded = 200;          // never call more steps than this warm-up, nor more than half of the series
  double min_relative_change = 0.01;  // a shift smaller than this is not warm-up: nobody would report it
};

// Where a series of step times begins to be steady.
struct SteadyState {
  size_t excluded = 0;  // steps at the start that are warm-up; the first step always is (0 only for an empty series)
  bool steady = true;   // false: a shift remains after the bound, so the rest is no steady state
  std::string reason;   // in words, with numbers
};

// Change points by binary segmentation from the front (after Barrett et al., OOPSLA 2017, arXiv 1602.00602): the
// two-segment least-squares fit that gains most is accepted when the gain exceeds a BIC penalty of 3·σ²·log n, inflated
// for autocorrelation, and the segments' medians differ by min_relative_change. Values are first drawn in to ±10 robust
// standard deviations around the later half's median, so that one slow step cannot look like a regime. σ is the later
// half's 1.4826·MAD. Never leaves fewer than half of the steps.
SteadyState find_steady_state(std::span<const double> step_times, const SteadyStateOptions& options = {});

}  // namespace tprimat
