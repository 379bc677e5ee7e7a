#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tprimat {

struct ChangePointOptions {
  double min_relative_change = 0.01;  // between the medians of neighbouring segments; a smaller shift is none
  size_t min_segment = 3;             // values; fewer are outliers
};

struct LevelShift {
  size_t at = 0;                 // first value of the new level
  double before = 0, after = 0;  // medians of the two segments
};

// Where a series of levels shifts, any number of times: least squares over all segmentations, a price of 3·σ²·log n per
// shift, exact by dynamic programming with pruning (PELT: Killick, Fearnhead and Eckley, JASA 107, 2012). σ
// is 1.4826·MAD of the differences of neighbours / √2, which shifts do not widen; it is inflated for the correlation
// that the residuals of a first segmentation show. Values are drawn in to 3σ around the running median of five, which
// keeps edges and hides up to two strange values in a row. Shifts below min_relative_change are merged, the smallest
// first.
std::vector<LevelShift> find_level_shifts(std::span<const double> values, const ChangePointOptions& options = {});

}  // namespace tprimat
