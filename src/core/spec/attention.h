#pragma once

#include <cstdint>

#include "text/fields.h"

namespace tprimat {

// Multi-head latent attention, MLA (DeepSeek-V2, arXiv 2405.04434, section 2.1): queries, and keys and values together,
// pass through a narrow product first. ModelSpec::head_dim is then the part of a head without rotary positions.
struct LatentAttention {
  int64_t query_rank = 0;  // 0: queries are projected directly
  int64_t key_value_rank = 0;
  int64_t rope_head_dim = 0;  // rotary part of each query head, and of the one key that all heads share
  int64_t value_head_dim = 0;

  static constexpr auto fields() {
    using L = LatentAttention;
    return field_list(field("query_rank", &L::query_rank, "rank of the low-rank projection of queries; 0: none"),
                      field("key_value_rank", &L::key_value_rank, "rank of the low-rank projection of keys and values"),
                      field("rope_head_dim", &L::rope_head_dim, "rotary part of a head"),
                      field("value_head_dim", &L::value_head_dim, "width of a head's values"));
  }
  bool operator==(const LatentAttention&) const = default;
};

// The Mamba-2 mixers of a hybrid (arXiv 2405.21060, section 7): state-space layers in place of attention. Each layer of
// a hybrid is one of three: such a mixer, attention, or an MLP, dense or of experts.
struct MambaMixers {
  int64_t layers = 0;
  int64_t attention_layers = 0;
  int64_t inner_width = 0;  // heads x width of a head
  int64_t heads = 0;
  int64_t groups = 0;  // that share B and C
  int64_t state = 0;   // values of the state per channel
  int64_t chunk = 0;   // tokens that the scan takes together; 0: the source does not say
  int64_t convolution = 4;

  static constexpr auto fields() {
    using M = MambaMixers;
    return field_list(field("layers", &M::layers, "layers that are Mamba-2 mixers"),
                      field("attention_layers", &M::attention_layers, "layers that are attention; the rest are MLPs"),
                      field("inner_width", &M::inner_width, "heads x width of a head"),
                      field("heads", &M::heads, "heads of a mixer"),
                      field("groups", &M::groups, "groups of heads that share B and C"),
                      field("state", &M::state, "values of the state per channel"),
                      field("chunk", &M::chunk, "tokens that the scan takes together; 0: not known"),
                      field("convolution", &M::convolution, "width of the convolution"));
  }
  bool operator==(const MambaMixers&) const = default;
};

}  // namespace tprimat
