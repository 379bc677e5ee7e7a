#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/calibrate.h"
#include "published/table.h"
#include "text/fields.h"

namespace tprimat {

// What the planner says of one row of a published table, from the row's inputs alone.
struct PlannedRow {
  int64_t line = 0;
  std::string model, gpu, precision, layout;
  std::optional<double> predicted, published;  // tokens/s per GPU
  std::optional<double> error;                 // predicted step time over published step time, less 1
  std::optional<double> memory_error;          // predicted bytes over published bytes, less 1
  std::optional<double> activation_error;      // the same of activations alone, or of their share
  std::optional<bool> fits, ran;               // whether the layout is predicted to fit, and whether it did
  bool fitted = false;                         // the row's group is on the side that parameters are fitted to
  std::vector<std::string> assumptions;
  std::optional<std::string> missing;

  static constexpr auto fields() {
    using P = PlannedRow;
    return std::tuple{field("line", &P::line, "of the file, from 1"),
                      field("model", &P::model, "as printed"),
                      field("gpu", &P::gpu, "part of the planner's list"),
                      field("precision", &P::precision, "of the matrix products"),
                      field("layout", &P::layout, "GPUs and how the training is laid out over them"),
                      field("predicted", &P::predicted, "tokens/s per GPU"),
                      field("published", &P::published, "tokens/s per GPU"),
                      field("error", &P::error, "predicted step time over published step time, less 1"),
                      field("memory_error", &P::memory_error, "predicted bytes over published bytes, less 1"),
                      field("activation_error", &P::activation_error, "the same of activations alone"),
                      field("fits", &P::fits, "the layout is predicted to fit into memory"),
                      field("ran", &P::ran, "it did"),
                      field("fitted", &P::fitted, "on the side that the built-in parameters are fitted to"),
                      field("assumptions", &P::assumptions, "inputs that the row does not print"),
                      field("missing", &P::missing, "why nothing is predicted")};
  }
};

// Of absolute errors.
struct PlanErrors {
  std::string of;  // "all", "gpu H100-SXM-80GB", "precision fp8", "tested"
  int64_t rows = 0;
  double median = 0, p90 = 0, worst = 0;
  double bias = 0;  // median of the signed errors

  static constexpr auto fields() {
    using P = PlanErrors;
    return std::tuple{field("of", &P::of, "which rows"),
                      field("rows", &P::rows, "predicted"),
                      field("median", &P::median,
                            "of the absolute relative errors: of the step time, or of the memory where `of` says so"),
                      field("p90", &P::p90, "their 90th percentile"),
                      field("worst", &P::worst, "the largest"),
                      field("bias", &P::bias, "median of the signed errors")};
  }
};

struct PlannedTable {
  std::string table;
  std::vector<PlanErrors> errors;
  std::map<std::string, int64_t> not_predicted;  // reason -> rows
  std::vector<PlannedRow> rows;

  static constexpr auto fields() {
    using P = PlannedTable;
    return std::tuple{field("table", &P::table, "file name without extension"),
                      field("errors", &P::errors, "quantiles of the errors"),
                      field("not_predicted", &P::not_predicted, "rows without a prediction, by reason"),
                      field("rows", &P::rows, "all rows")};
  }
};

PlannedTable plan_table(const PublishedTable& table, const ParameterSet& parameters);

// Errors of the rows of all tables together.
std::vector<PlanErrors> join_errors(const std::vector<PlannedTable>& tables);

std::string render_plan_validation(const std::vector<PlannedTable>& tables, bool every_row);

// Rows that parameters are fitted to: three groups of four, a group being all rows of one model, GPU, number of GPUs
// and precision, so that near copies fall on one side. By XXH64 of the group's name.
bool is_fitted(const std::string& table, const PublishedRow& row);

// What a table's fitted rows (or, with `all`, every row that can be predicted) measured.
std::vector<Observation> observations_of(const PublishedTable& table, bool all);

}  // namespace tprimat
