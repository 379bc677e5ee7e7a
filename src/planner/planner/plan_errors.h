#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "text/fields.h"

namespace tprimat::planner {

// What the planner says of one row of a published table, from the row's inputs alone.
struct PlannedRow {
  int64_t line = 0;
  std::string model, gpu, vendor, precision, layout;
  std::string kind, program;  // ModelKind; Family::id
  int64_t gpus = 0;
  double parameters = 0;                       // of the model
  std::optional<double> predicted, published;  // tokens/s per GPU
  std::optional<double> error;                 // predicted step time over published step time, less 1
  std::optional<double> low, high;             // factors of the predicted step time, of the interval that holds 80 %
  std::string basis;                           // of that interval
  std::optional<double> memory_error;          // predicted bytes over published bytes, less 1
  std::optional<double> activation_error;      // the same of activations alone, or of their share
  std::optional<double> minutes, published_minutes;  // from the first step to a task's target quality
  std::optional<double> minutes_error;               // predicted over published, less 1
  std::optional<bool> fits, ran;                     // whether the layout is predicted to fit, and whether it did
  std::vector<std::string> settings;                 // beside the layout: "balanced", "alltoall", "mx"
  std::vector<std::string> assumptions;
  std::optional<std::string> weak;  // why the row's figures are left out of fits
  std::optional<std::string> missing;

  // Whether the measured step time lies in the interval; nothing where either is not known.
  std::optional<bool> is_covered() const;

  static constexpr auto fields() {
    using P = PlannedRow;
    return field_list(
        field("line", &P::line, "line in the file, from 1"), field("model", &P::model, "as printed"),
        field("kind", &P::kind, "dense, sparse or adapters"), field("gpu", &P::gpu, "GPU in the planner's list"),
        field("vendor", &P::vendor, "of the GPU"), field("program", &P::program, "framework family"),
        field("precision", &P::precision, "of the matrix products"), field("gpus", &P::gpus, "number of GPUs"),
        field("parameters", &P::parameters, "model parameters"),
        field("layout", &P::layout, "number of GPUs and parallel layout"),
        field("predicted", &P::predicted, "tokens/s per GPU"), field("published", &P::published, "tokens/s per GPU"),
        field("error", &P::error, "predicted step time over published step time, minus 1"),
        field("low", &P::low, "lower end of the 80 % interval, as a factor of the predicted step time"),
        field("high", &P::high, "its upper end"), field("basis", &P::basis, "measured rows behind the interval"),
        field("memory_error", &P::memory_error, "predicted bytes over published bytes, minus 1"),
        field("activation_error", &P::activation_error, "the same for activations alone"),
        field("minutes", &P::minutes, "predicted time to the task's target quality, minutes"),
        field("published_minutes", &P::published_minutes, "time to train of the submission, minutes"),
        field("minutes_error", &P::minutes_error, "predicted over published time to train, minus 1"),
        field("fits", &P::fits, "the layout is predicted to fit into memory"),
        field("ran", &P::ran, "the published run fit into memory"),
        field("settings", &P::settings, "settings beside layout and precision"),
        field("assumptions", &P::assumptions, "assumed inputs, missing from the row"),
        field("weak", &P::weak, "reason to leave the row out of fits"),
        field("missing", &P::missing, "reason for a missing prediction"));
  }
};

// Of absolute errors.
struct PlanErrors {
  std::string of;  // "all", "kind sparse", "gpu H100-SXM-80GB", "precision fp8", "memory", "weak"
  int64_t rows = 0;
  double median = 0, p90 = 0, worst = 0;
  double bias = 0;                // median of the signed errors
  std::optional<double> covered;  // share of the rows in their 80 % intervals, where those are known

  static constexpr auto fields() {
    using P = PlanErrors;
    return field_list(
        field("of", &P::of, "which rows"), field("rows", &P::rows, "predicted"),
        field("median", &P::median, "median absolute relative error of the step time, or of memory if `of` says so"),
        field("p90", &P::p90, "their 90th percentile"), field("worst", &P::worst, "the largest"),
        field("bias", &P::bias, "median of the signed errors"),
        field("covered", &P::covered, "share of measured step times in their 80 % intervals"));
  }
};

PlanErrors errors_of(std::string of, std::vector<double> errors);
std::vector<std::string> error_cells(const PlanErrors& errors);     // for people: all fields but `covered`
std::string signed_percent(const std::optional<double>& fraction);  // "+3.2 %"; empty for none

// Errors of rows by groups. Weak rows are in the group "weak" alone.
class ErrorGroups {
 public:
  void add(const PlannedRow& row);  // all, kind, gpu, precision, memory, activations, weak
  void add_under(const PlannedRow& row, const std::string& group);  // "table moe_perf"; step time only
  std::vector<PlanErrors> summarise() const;

 private:
  struct Group {
    std::vector<double> errors;
    int64_t with_interval = 0, covered = 0;
  };
  void add_step(const PlannedRow& row, const std::string& group);
  std::map<std::string, Group> groups_;
};

}  // namespace tprimat::planner
