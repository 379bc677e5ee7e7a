#include "stats/rank_correlation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "stats/descriptive.h"

namespace tprimat {

std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t first = 0; first < order.size();) {
    size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (size_t i = first; i < end; ++i) ranks[order[i]] = (static_cast<double>(first + end) + 1) / 2;
    first = end;
  }
  return ranks;
}

double spearman(std::span<const double> left, std::span<const double> right) {
  CHECK(left.size() == right.size());
  if (left.empty()) return 0;
  const std::vector<double> a = ranks_of(left), b = ranks_of(right);
  const double middle = mean(a);  // of both
  double together = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    together += (a[i] - middle) * (b[i] - middle);
    of_a += (a[i] - middle) * (a[i] - middle), of_b += (b[i] - middle) * (b[i] - middle);
  }
  return of_a > 0 && of_b > 0 ? together / std::sqrt(of_a * of_b) : 0;
}

}  // namespace tprimat
