#pragma once

#include <optional>

#include "stats/mean_estimate.h"

namespace tprimat {

// A value with its interval.
struct Bounded {
  double value = 0;
  Interval interval;
};

// Interval of a - b for two independent estimates, from their own intervals alone: the square-and-add rule of Zou and
// Donner (Statistics in Medicine 27, 2008), which keeps intervals that are not symmetric.
Interval difference_interval(const Bounded& a, const Bounded& b);

// Interval of a / b by the same rule on logarithms. Nothing unless all figures are positive.
std::optional<Interval> ratio_interval(const Bounded& a, const Bounded& b);

}  // namespace tprimat
