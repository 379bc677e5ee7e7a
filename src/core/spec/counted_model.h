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

// The Mamba-2 mixers of a hybrid (arXiv 2405.21060, section 7): state-space layers in place of attention. Each layer of
// a hybrid is one of four: such a mixer, attention, or an MLP, dense or of experts.
struct MambaMixers {
  int64_t layers = 0;
  int64_t inner_width = 0;  // heads x width of a head
  int64_t heads = 0;
  int64_t groups = 0;  // that share B and C
  int64_t state = 0;   // values of the state per channel
  int64_t chunk = 0;   // tokens that the scan takes together; 0: the source does not say
  int64_t convolution = 4;
  bool operator==(const MambaMixers&) const = default;
};

// A shape for counting parameters and FLOPs: a ModelSpec, and parts that no trainer of this program runs.
struct CountedModel {
  ModelSpec model;
  std::optional<LatentAttention> latent = std::nullopt;
  int64_t dense_layers = 0;         // first layers of a mixture of experts that have a dense MLP
  int64_t dense_ffn = 0;            // its inner width
  int64_t shared_ffn = 0;           // inner width of the experts that every token passes
  int64_t unwindowed_layers = 0;    // layers that ignore ModelSpec::sliding_window
  int64_t prediction_layers = 0;    // layers that predict further tokens (arXiv 2412.19437, section 2.2)
  bool shared_prediction = false;   // one block whose weights all of them share
  int64_t latent_expert_width = 0;  // routed experts work at this width, between two products; 0: hidden_size
  int64_t attention_layers = 0;     // of a hybrid
  std::optional<MambaMixers> mamba = std::nullopt;
  std::string source = {};  // where the shape was stated; empty for shapes of the configuration

  // A model of this kind has at least so many.
  int64_t least_layers() const { return mamba ? mamba->layers + attention_layers + dense_layers : dense_layers; }
  int64_t layers_with_attention() const { return mamba ? attention_layers : model.num_layers; }
  int64_t layers_with_mlp() const {
    return mamba ? model.num_layers - mamba->layers - attention_layers : model.num_layers;
  }
};

// Shapes from src/core/spec/counted_models.tsv, each with its source.
const std::vector<CountedModel>& counted_models();

// By any usual spelling: a model of the catalogue (spec/model_catalogue.h), else one of counted_models().
std::optional<CountedModel> find_counted_model(std::string_view name);

}  // namespace tprimat
