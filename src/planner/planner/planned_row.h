#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

}  // namespace tprimat::planner
