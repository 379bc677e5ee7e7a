#include "planner/probe_curves.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "planner/step_time.h"

namespace tprimat::planner {
namespace {

// ln of the rate of large products that a measured one stands for, by that saturation.
double large_rate(const ProductPoint& point, double saturation) {
  const double flops = 2 * point.rows * point.columns * point.depth;
  const double seconds = time_product(point.rows, point.columns, point.depth, {1, saturation, 1});
  return std::log(point.flops_per_second * seconds / flops);
}

struct CurveFit {
  ProductCurve curve;
  double cost = 0;
};

CurveFit fit_rate(const std::vector<ProductPoint>& points, double saturation, std::optional<double> peak) {
  constexpr double k_noise = 0.03;
  double mean = 0;
  for (const ProductPoint& each : points) mean += large_rate(each, saturation) / static_cast<double>(points.size());
  const double rate = std::min(std::exp(mean), peak.value_or(std::numeric_limits<double>::infinity()));
  mean = std::log(rate);
  CurveFit fit{{rate, saturation}, 0};
  for (const ProductPoint& each : points) fit.cost += std::pow((large_rate(each, saturation) - mean) / k_noise, 2);
  return fit;
}

}  // namespace

ProductCurve fit_product_curve(const std::vector<ProductPoint>& points, double believed_saturation,
                               std::optional<double> peak) {
  constexpr double k_spread = 0.5, k_widest = 2, k_step = 0.01;  // of ln(saturation / believed)
  CHECK(!points.empty() && believed_saturation > 0);
  std::optional<CurveFit> best;
  for (double off = -k_widest; off <= k_widest; off += k_step) {
    CurveFit fit = fit_rate(points, believed_saturation * std::exp(off), peak);
    fit.cost += std::pow(off / k_spread, 2);
    if (!best || fit.cost < best->cost) best = fit;
  }
  return best->curve;
}

std::optional<double> fit_bus_bandwidth(const CollectiveReport& report, CollectiveKind kind) {
  constexpr int64_t k_large = 1 << 20;
  // seconds = a + b x with x = volume; weights 1 / seconds^2: a w x-weighted line.
  double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0, fastest = 0;
  int64_t count = 0;
  for (const CollectiveRate& each : report.rates) {
    if (each.kind != kind || each.bytes < k_large) continue;
    const double seconds = static_cast<double>(each.bytes) / each.algorithm_bytes_per_second;
    const double volume = each.bus_bytes_per_second * seconds, weight = 1 / (seconds * seconds);
    w += weight, wx += weight * volume, wy += weight * seconds;
    wxx += weight * volume * volume, wxy += weight * volume * seconds;
    fastest = std::max(fastest, each.bus_bytes_per_second), ++count;
  }
  if (count == 0) return std::nullopt;
  const double spread = w * wxx - wx * wx, slope = (w * wxy - wx * wy) / spread, start = (wxx * wy - wx * wxy) / spread;
  const bool is_line = count > 1 && spread > 0 && slope > 0 && start >= 0 && std::isfinite(slope);
  return is_line ? 1 / slope : fastest;
}

}  // namespace tprimat::planner
