#pragma once

#include <string>
#include <vector>

#include "planner/planned_row.h"

namespace tprimat::planner {

// Rows of one table that differ by layout and settings alone: the same GPU, as many of them, and models of like size.
// Sizes belong together while each is at most a tenth larger than the next smaller one, so that the shapes which a
// sweep tried for one size stay together.
struct SweptFamily {
  std::string of;  // "GPT 176B to GPT 206B on 384 A100-SXM-80GB"
  int64_t rows = 0;
  double spearman = 0;     // of predicted and published tokens/s per GPU
  double best_behind = 0;  // published rate of the best row over that of the row that is predicted best, less 1

  static constexpr auto fields() {
    using S = SweptFamily;
    return field_list(field("of", &S::of, "models, number of GPUs, GPU"), field("rows", &S::rows, "predicted"),
                      field("spearman", &S::spearman, "rank correlation of predicted and published tokens/s per GPU"),
                      field("best_behind", &S::best_behind,
                            "published rate of the best row over that of the row predicted best, minus 1"));
  }
};

// Those of at least four rows with both figures, in the order of their first rows.
std::vector<SweptFamily> find_sweeps(const std::vector<PlannedRow>& rows);

}  // namespace tprimat::planner
