#pragma once

// Attention as graphs of cuDNN. Only sources that were found cuDNN's headers include this one.
#include <array>
#include <compare>
#include <map>
#include <memory>

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include "ops/attention.h"

namespace tprimat::engine::gpu {

// Everything that a plan depends on.
struct CudnnAttention {
  enum class Pass { forward, backward, backward_in_order };
  // A tensor of heads in memory: elements from one row, and from one sequence, to the next.
  struct Strides {
    int64_t row = 0, sequence = 0;
    auto operator<=>(const Strides&) const = default;
  };
  Pass pass = Pass::forward;
  bool is_bf16 = true;
  int64_t batch = 0, queries = 0, keys = 0, heads = 0, kv_heads = 0, head_dim = 0, window = 0;
  Strides query, key, value, y;      // read (y: written by the forward pass)
  Strides dy, dquery, dkey, dvalue;  // of the backward pass
  auto operator<=>(const CudnnAttention&) const = default;
};

// Names of tensors in the graphs.
enum CudnnTensor : int64_t { k_query = 1, k_key, k_value, k_y, k_logsumexp, k_dy, k_dquery, k_dkey, k_dvalue };

// The operations, not yet planned for a device.
std::shared_ptr<cudnn_frontend::graph::Graph> attention_graph(const CudnnAttention& attention);

}  // namespace tprimat::engine::gpu
