#pragma once

#include <cstdint>

#include "ops/element.h"

namespace tprimat {

// Causal self-attention with grouped key/value heads (Ainslie et al., arXiv 2305.13245), computed in tiles with a
// running softmax (Dao et al., arXiv 2205.14135): the sequence×sequence matrix is never stored.
struct AttentionShape {
  int64_t batch = 0;
  int64_t sequence = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // divides heads; query head h uses key/value head h / (heads / kv_heads)
  int64_t head_dim = 0;
  int64_t window = 0;  // a query at t sees keys t−window+1 … t; 0: all up to t

  int64_t row_width() const { return (heads + 2 * kv_heads) * head_dim; }  // one token of qkv: queries, keys, values
  int64_t first_key(int64_t query) const { return window > 0 && query >= window ? query - window + 1 : 0; }
};

// y[b,t,h] = Σ_s softmax_s(q·k_s / √head_dim) v_s.   qkv: (batch·sequence)×row_width; y:
// (batch·sequence)×(heads·head_dim); logsumexp: batch×heads×sequence, kept for the backward pass.
template <class T>
void attention_forward(const AttentionShape& shape, const T* qkv, T* y, Accum<T>* logsumexp);

template <class T>
struct AttentionGradient {
  const T* qkv;
  const T* y;
  const Accum<T>* logsumexp;
  const T* dy;
  T* dqkv;  // overwritten
};
template <class T>
void attention_backward(const AttentionShape& shape, const AttentionGradient<T>& gradient);

}  // namespace tprimat
