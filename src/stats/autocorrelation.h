#pragma once

#include <cstddef>
#include <span>

namespace tprimat {

// Correlation of the series with itself `lag` steps later, -1..1; 0 for a constant series or a lag beyond its end.
double autocorrelation(std::span<const double> values, size_t lag);

// Correlation of neighbours, 0 to 0.9, as of a first-order process: the lag-1 estimate freed of its bias towards zero,
// -(1 + 3r) / n (Kendall, Biometrika 41, 1954). 0 for fewer than five values.
double first_order_memory(std::span<const double> values);

// Length of the blocks in which to resample a series so that its autocorrelation survives: the automatic rule of
// Politis and White (Econometric Reviews 23, 2004) for the circular block bootstrap, with the correction of Patton,
// Politis and White (2009). Between 1 and n/4, so that there are always at least four blocks; n^(1/3) bounds it from
// below for n of 27 and more, because a short series shows too little of its own memory. 1 for fewer than eight values.
size_t block_length(std::span<const double> values);

}  // namespace tprimat
