#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan_errors.h"
#include "text/fields.h"

namespace tprimat::planner {

// Rows of one table that differ by layout and settings alone: the same GPU, as many of them, one kind of model, and
// models of like size. Sizes belong together while each is at most a tenth larger than the next smaller one, so that
// the shapes which a sweep tried for one size stay together. Rows with the same settings, such as those of two
// releases, are one: their medians.
struct SweptFamily {
  std::string kind;  // ModelKind
  std::string of;    // "GPT 176B to GPT 206B on 384 A100-SXM-80GB"
  int64_t rows = 0;
  double spearman = 0;     // of predicted and published tokens/s per GPU
  double best_behind = 0;  // published rate of the best row over that of the row that is predicted best, less 1

  static constexpr auto fields() {
    using S = SweptFamily;
    return field_list(field("kind", &S::kind, "dense, sparse or adapters"),
                      field("of", &S::of, "models, number of GPUs, GPU"),
                      field("rows", &S::rows, "predicted, with different settings"),
                      field("spearman", &S::spearman, "rank correlation of predicted and published tokens/s per GPU"),
                      field("best_behind", &S::best_behind,
                            "published rate of the best row over that of the row predicted best, minus 1"));
  }
};

// Those of at least four settings with both figures, in the order of their first rows. Weak rows are left out.
std::vector<SweptFamily> find_sweeps(const std::vector<PlannedRow>& rows);

struct RankingQuality {
  int64_t sweeps = 0;
  std::optional<double> median_spearman;
  std::map<std::string, double> by_kind;  // the same of one kind of model

  static constexpr auto fields() {
    using R = RankingQuality;
    return field_list(field("sweeps", &R::sweeps, "of at least four settings"),
                      field("median_spearman", &R::median_spearman, "median of their rank correlations"),
                      field("by_kind", &R::by_kind, "the same for each kind of model"));
  }
};
RankingQuality judge_ranking(const std::vector<SweptFamily>& sweeps);

}  // namespace tprimat::planner
