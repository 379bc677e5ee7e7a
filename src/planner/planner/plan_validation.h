#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/calibrate.h"
#include "planner/planned_row.h"
#include "planner/swept_family.h"
#include "published/table.h"
#include "text/fields.h"

namespace tprimat::planner {

// Of absolute errors.
struct PlanErrors {
  std::string of;  // "all", "gpu H100-SXM-80GB", "precision fp8", "memory"
  int64_t rows = 0;
  double median = 0, p90 = 0, worst = 0;
  double bias = 0;  // median of the signed errors

  static constexpr auto fields() {
    using P = PlanErrors;
    return field_list(
        field("of", &P::of, "which rows"), field("rows", &P::rows, "predicted"),
        field("median", &P::median, "median absolute relative error of the step time, or of memory if `of` says so"),
        field("p90", &P::p90, "their 90th percentile"), field("worst", &P::worst, "the largest"),
        field("bias", &P::bias, "median of the signed errors"));
  }
};

struct PlannedTable {
  std::string table;
  std::vector<PlanErrors> errors;
  std::vector<SweptFamily> sweeps;
  std::map<std::string, int64_t> not_predicted;  // reason -> rows
  std::vector<PlannedRow> rows;

  static constexpr auto fields() {
    using P = PlannedTable;
    return field_list(field("table", &P::table, "file name without extension"),
                      field("errors", &P::errors, "quantiles of the errors"),
                      field("sweeps", &P::sweeps, "ranking quality for layouts and settings of one model"),
                      field("not_predicted", &P::not_predicted, "rows without a prediction, by reason"),
                      field("rows", &P::rows, "all rows"));
  }
};

PlannedTable plan_table(const PublishedTable& table, const ParameterSet& parameters);

// Every row predicted by parameters that were fitted, from the priors of `parameters`, without its fold: the error that
// rows which nobody has seen can be expected to have.
std::vector<PlannedTable> cross_validate(const std::vector<PublishedTable>& tables, const ParameterSet& parameters,
                                         int64_t folds);

// Errors of the rows of all tables together.
std::vector<PlanErrors> join_errors(const std::vector<PlannedTable>& tables);

std::string render_plan_validation(const std::vector<PlannedTable>& tables, bool every_row);

// What a table's rows measured, as far as they can be predicted.
std::vector<Observation> observations_of(const PublishedTable& table);

}  // namespace tprimat::planner
