#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/model_spec.h"

namespace tprimat {

// A shape of a public model, embedded in the program.
struct KnownModel {
  ModelSpec spec;
  std::optional<int64_t> published_parameters = {};         // without layers that predict further tokens
  std::optional<int64_t> published_active_parameters = {};  // those that one token passes
  std::string source = {};                                  // where the shape was stated
};

// src/core/spec/models.tsv: shapes that a configuration may name.
const std::vector<KnownModel>& model_catalogue();

// src/core/spec/counted_models.tsv: shapes that published tables name, complete enough for counting alone.
const std::vector<KnownModel>& counted_models();

// Finds a shape by any usual spelling: "Llama 3.1 8B", "llama3.1_8b", "meta-llama/Llama-3.1-8B", "gpt2".
std::optional<ModelSpec> find_model(std::string_view name);

// By any usual spelling: a model of the catalogue, without its source, else one of counted_models().
std::optional<KnownModel> find_counted_model(std::string_view name);

}  // namespace tprimat
