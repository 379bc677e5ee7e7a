#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/model_spec.h"

namespace tprimat {

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): queries, and keys and values together, pass
// through a narrow product first. ModelSpec::head_dim is then the part of a head without rotary positions.
struct LatentAttention {
  int64_t query_rank = 0;  // 0: queries are projected directly
  int64_t key_value_rank = 0;
  int64_t rope_head_dim = 0;  // rotary part of each query head, and of the one key that all heads share
  int64_t value_head_dim = 0;
  bool operator==(const LatentAttention&) const = default;
};

// A shape as far as parameters and FLOPs go: what ModelSpec says, and what no trainer of this program runs.
struct CountedModel {
  ModelSpec model;
  std::optional<LatentAttention> latent = std::nullopt;
  int64_t dense_layers = 0;       // first layers of a mixture of experts that have a dense MLP
  int64_t dense_ffn = 0;          // its inner width
  int64_t shared_ffn = 0;         // inner width of the experts that every token passes
  int64_t unwindowed_layers = 0;  // layers that ignore ModelSpec::sliding_window
  int64_t prediction_layers = 0;  // layers that predict further tokens (arXiv 2412.19437, section 2.2)
  std::string source = {};        // where the shape was stated; empty for shapes of the configuration
};

// Shapes from src/spec/counted_models.tsv, each with its source.
const std::vector<CountedModel>& counted_models();

// By any usual spelling: a model of the catalogue (spec/model_catalogue.h), else one of counted_models().
std::optional<CountedModel> find_counted_model(std::string_view name);

}  // namespace tprimat
