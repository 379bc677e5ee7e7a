#pragma once

#include <span>
#include <vector>

namespace tprimat {

// Place of each value in ascending order, from 1; equal values share the mean of their places.
std::vector<double> ranks_of(std::span<const double> values);

// Spearman's rank correlation: Pearson's of the ranks (Am. J. Psychology 15, 1904). 0 where all values of a side are
// equal. As many values on both sides (CHECK).
double spearman(std::span<const double> left, std::span<const double> right);

}  // namespace tprimat
