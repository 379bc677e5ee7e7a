#pragma once

#include <span>
#include <vector>

namespace tprimat {

// Adjusted p-values in the same order: those at most q are the discoveries of which on average no more than the share q
// is false, however the tests depend on each other (Benjamini and Yekutieli, Annals of Statistics 29, 2001):
// p(i)·m·(1 + 1/2 + ... + 1/m)/i, made monotone from the largest down, at most 1.
std::vector<double> adjust_p_values(std::span<const double> p_values);

}  // namespace tprimat
