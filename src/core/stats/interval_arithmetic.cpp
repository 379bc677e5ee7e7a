#include "stats/interval_arithmetic.h"

#include <cmath>

namespace tprimat {
namespace {

Bounded logarithm(const Bounded& x) {
  return {std::log(x.value), {std::log(x.interval.low), std::log(x.interval.high)}};
}

bool is_positive(const Bounded& x) { return x.interval.low > 0 && x.value > 0 && x.interval.high > 0; }

}  // namespace

Interval difference_interval(const Bounded& a, const Bounded& b) {
  const double difference = a.value - b.value;
  return {difference - std::hypot(a.value - a.interval.low, b.interval.high - b.value),
          difference + std::hypot(a.interval.high - a.value, b.value - b.interval.low)};
}

std::optional<Interval> ratio_interval(const Bounded& a, const Bounded& b) {
  if (!is_positive(a) || !is_positive(b)) return std::nullopt;
  const Interval logs = difference_interval(logarithm(a), logarithm(b));
  return Interval{std::exp(logs.low), std::exp(logs.high)};
}

}  // namespace tprimat
