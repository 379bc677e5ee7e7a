#include "stats/false_discovery.h"

#include <algorithm>
#include <numeric>

namespace tprimat {

std::vector<double> adjust_p_values(std::span<const double> p_values) {
  const size_t count = p_values.size();
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p_values[a] > p_values[b]; });
  double harmonic = 0;
  for (size_t i = 1; i <= count; ++i) harmonic += 1 / static_cast<double>(i);
  std::vector<double> adjusted(count);
  double least = 1;
  for (size_t i = 0; i < count; ++i) {
    const double rank = static_cast<double>(count - i);
    least = std::min(least, p_values[order[i]] * static_cast<double>(count) * harmonic / rank);
    adjusted[order[i]] = least;
  }
  return adjusted;
}

}  // namespace tprimat
