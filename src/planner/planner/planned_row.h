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
        field("line", &P::line, "of the file, from 1"), field("model", &P::model, "as printed"),
        field("gpu", &P::gpu, "part of the planner's list"),
        field("precision", &P::precision, "of the matrix products"), field("gpus", &P::gpus, "how many"),
        field("parameters", &P::parameters, "of the model"),
        field("layout", &P::layout, "GPUs and how the training is laid out over them"),
        field("predicted", &P::predicted, "tokens/s per GPU"), field("published", &P::published, "tokens/s per GPU"),
        field("error", &P::error, "predicted step time over published step time, less 1"),
        field("memory_error", &P::memory_error, "predicted bytes over published bytes, less 1"),
        field("activation_error", &P::activation_error, "the same of activations alone"),
        field("fits", &P::fits, "the layout is predicted to fit into memory"), field("ran", &P::ran, "it did"),
        field("assumptions", &P::assumptions, "inputs that the row does not print"),
        field("missing", &P::missing, "why nothing is predicted"));
  }
};

}  // namespace tprimat::planner
