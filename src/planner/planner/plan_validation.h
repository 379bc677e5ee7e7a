#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/calibrate.h"
#include "published/table.h"
#include "text/fields.h"

namespace tprimat::planner {

// What the planner says of one row of a published table, from the row's inputs alone.
struct PlannedRow {
  int64_t line = 0;
  std::string model, gpu, precision, layout;
  int64_t gpus = 0;
  double parameters = 0;                       // of the model
  std::optional<double> predicted, published;  // tokens/s per GPU
  std::optional<double> error;                 // predicted step time over published step time, less 1
  std::optional<double> memory_error;          // predicted bytes over published bytes, less 1
  std::optional<double> activation_error;      // the same of activations alone, or of their share
  std::optional<bool> fits, ran;               // whether the layout is predicted to fit, and whether it did
  std::vector<std::string> assumptions;
  std::optional<std::string> missing;

  static constexpr auto fields() {
    using P = PlannedRow;
    return field_list(
        field("line", &P::line, "line in the file, from 1"), field("model", &P::model, "as printed"),
        field("gpu", &P::gpu, "GPU in the planner's list"), field("precision", &P::precision, "of the matrix products"),
        field("gpus", &P::gpus, "number of GPUs"), field("parameters", &P::parameters, "model parameters"),
        field("layout", &P::layout, "number of GPUs and parallel layout"),
        field("predicted", &P::predicted, "tokens/s per GPU"), field("published", &P::published, "tokens/s per GPU"),
        field("error", &P::error, "predicted step time over published step time, minus 1"),
        field("memory_error", &P::memory_error, "predicted bytes over published bytes, minus 1"),
        field("activation_error", &P::activation_error, "the same for activations alone"),
        field("fits", &P::fits, "the layout is predicted to fit into memory"),
        field("ran", &P::ran, "the published run fit into memory"),
        field("assumptions", &P::assumptions, "assumed inputs, missing from the row"),
        field("missing", &P::missing, "reason for a missing prediction"));
  }
};

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

PlanErrors errors_of(std::string of, std::vector<double> errors);
std::vector<std::string> error_cells(const PlanErrors& errors);     // for people, in the order of the fields
std::string signed_percent(const std::optional<double>& fraction);  // "+3.2 %"; empty for none

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
