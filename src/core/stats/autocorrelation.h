#pragma once

#include <cstddef>
#include <span>

namespace tprimat {

// Correlation of the series with itself `lag` steps later, -1..1; 0 for a constant series or a lag beyond its end.
double autocorrelation(std::span<const double> values, size_t lag);

// Correlation of neighbours, 0 to 0.97, as of a first-order process: the lag-1 estimate freed of its bias towards zero,
// -(1 + 3r) / n (Kendall, Biometrika 41, 1954). 0 for fewer than five values.
double first_order_memory(std::span<const double> values);

}  // namespace tprimat
