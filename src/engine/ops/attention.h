#pragma once

#include <cstdint>

#include "device/element.h"
#include "ops/matmul.h"
#include "ops/rope.h"

namespace tprimat::engine {

// Causal self-attention with grouped key/value heads (Ainslie et al., arXiv 2305.13245), computed in tiles with a
// running softmax (Dao et al., arXiv 2205.14135): the queries×keys matrix is never stored.
struct AttentionShape {
  int64_t batch = 0;        // sequences
  int64_t queries = 0;      // per sequence
  int64_t keys = 0;         // per sequence; keys past the last query's position are not looked at
  int64_t first_query = 0;  // position of query 0 among the keys; above 0 where ranks share a sequence
  int64_t heads = 0;
  int64_t kv_heads = 0;  // divides heads; query head h uses key/value head h / (heads / kv_heads)
  int64_t head_dim = 0;
  int64_t window = 0;  // a query at position t sees keys t−window+1 … t; 0: all up to t

  int64_t first_key(int64_t position) const { return window > 0 && position >= window ? position - window + 1 : 0; }
};

// Rows of heads: element (b, t, h, c) is at data[b·sequence_stride + t·row_stride + h·head_dim + c]. In blocks, which
// only gradients are (AttentionOps::finishes_gradients), they are columns of a matrix in blocks (MatrixView),
// row_stride wide: `data` is where the first block of head 0 begins; 32 divides head_dim and the tokens of a sequence.
template <class T>
struct HeadRows {
  T* data = nullptr;
  int64_t row_stride = 0;
  int64_t sequence_stride = 0;
  bool in_blocks = false;

  HeadRows<const T> read_only() const { return {data, row_stride, sequence_stride, in_blocks}; }
  // Where head h begins; in blocks, a multiple of 32 elements.
  T* head(int64_t h, int64_t head_dim) const { return data + h * head_dim * (in_blocks ? k_block_side : 1); }
};

template <class T>
struct AttentionInputs {
  HeadRows<const T> query, key, value;
};

template <class T>
struct AttentionGradient {
  AttentionInputs<T> inputs;
  HeadRows<const T> y;
  const Accum<T>* logsumexp;
  HeadRows<const T> dy;
  HeadRows<T> dquery;        // overwritten
  HeadRows<T> dkey, dvalue;  // overwritten, or added to
  bool accumulate = false;   // add to dkey and dvalue
  // Where it is given, what becomes dquery and dkey is rotated back before it is rounded (rope.h, direction −1); then
  // first_query is 0, and nothing is added up.
  RopeTable<const Accum<T>> rope{};

  bool is_finished() const { return rope.cosine != nullptr || dquery.in_blocks || dkey.in_blocks || dvalue.in_blocks; }
};

template <class T>
struct AttentionOps {
  // y[b,t,h] = Σ_s softmax_s(q·k_s / √head_dim) v_s.   query, y: batch×queries×heads; key, value: batch×keys×kv_heads;
  // logsumexp: batch×heads×queries, kept for the backward pass.
  void (*attention_forward)(const AttentionShape&, const AttentionInputs<T>&, const HeadRows<T>& y,
                            Accum<T>* logsumexp);
  void (*attention_backward)(const AttentionShape&, const AttentionGradient<T>&);
  // Whether attention_backward rotates gradients back, and writes them in blocks.
  bool finishes_gradients = false;
};

}  // namespace tprimat::engine
