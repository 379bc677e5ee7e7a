#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "spec/model_spec.h"
#include "spec/tsv_rows.h"

namespace tprimat {

// Shapes of public models, from src/core/spec/models.tsv (each row with its source), embedded in the program.
struct KnownModel {
  ModelSpec spec;
  int64_t published_parameters = 0;
  std::string source;
};
const std::vector<KnownModel>& model_catalogue();

// Finds a shape by any usual spelling: "Llama 3.1 8B", "llama3.1_8b", "meta-llama/Llama-3.1-8B", "gpt2".
std::optional<ModelSpec> find_model(std::string_view name);

// The shape that a row of our own model tables states (columns of models.tsv). A malformed row is a bug (CHECK).
ModelSpec parse_model_row(const TsvRow& row);

}  // namespace tprimat
