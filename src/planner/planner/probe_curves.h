#pragma once

#include <optional>
#include <vector>

#include "result/collective_report.h"

namespace tprimat::planner {

// A product whose rate was measured.
struct ProductPoint {
  double rows = 0, columns = 0, depth = 0;
  double flops_per_second = 0;
};

// The time model's curve through measured products: rate / (1 + saturation (1/m + 1/n + 1/k)).
struct ProductCurve {
  double flops_per_second = 0;  // of large products
  double saturation = 0;
};

// Least squares of ln(measured / modelled) over 3 %, and of ln(saturation / believed) over 0.5: a few similar shapes
// say little about the saturation. The rate is at most `peak`, where that is known. `points` is not empty.
ProductCurve fit_product_curve(const std::vector<ProductPoint>& points, double believed_saturation,
                               std::optional<double> peak);

// Bus bandwidth of one collective over large data, bytes/s: seconds = start + volume / bandwidth through its measured
// sizes from 1 MiB on, least squares of relative errors. Nothing where none is that large.
std::optional<double> fit_bus_bandwidth(const CollectiveReport& report, CollectiveKind kind);

}  // namespace tprimat::planner
