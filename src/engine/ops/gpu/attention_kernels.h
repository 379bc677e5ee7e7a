#pragma once

// Our own kernels behind attention_forward and attention_backward (gpu_ops.h), contracts as there. shape has at least
// one query, and heads of at most k_max_head_dim.
#include <cstdint>
#include <initializer_list>

#include "ops/attention.h"

namespace tprimat::engine::gpu {

// On tensor cores; T is bf16 or f16.
template <class T>
void tiled_attention_forward(const AttentionShape& shape, const AttentionInputs<T>& inputs, const HeadRows<T>& y,
                             float* logsumexp);
template <class T>
void tiled_attention_backward(const AttentionShape& shape, const AttentionGradient<T>& gradient);

// Every product in float.
void float_attention_forward(const AttentionShape& shape, const AttentionInputs<float>& inputs,
                             const HeadRows<float>& y, float* logsumexp);
void float_attention_backward(const AttentionShape& shape, const AttentionGradient<float>& gradient);

// All heads of some rows of each sequence, which lie side by side. T is bf16 or f16.
struct HeadBlock {
  int64_t batch, rows, width;  // width: of all heads
};
template <class T>
void add_heads(const HeadBlock& block, const HeadRows<const T>& from, const HeadRows<T>& to);
template <class T>
void clear_heads(const HeadBlock& block, const HeadRows<T>& rows);

// Whether heads can be read and written 16 bytes at a time.
template <class T>
bool heads_fit_packs(const AttentionShape& shape, std::initializer_list<HeadRows<const T>> all) {
  const auto is_whole = [](int64_t elements) { return elements * int64_t{sizeof(T)} % 16 == 0; };
  bool fit = is_whole(shape.head_dim);
  for (const HeadRows<const T>& rows : all)
    fit = fit && reinterpret_cast<uintptr_t>(rows.data) % 16 == 0 && is_whole(rows.row_stride) &&
          is_whole(rows.sequence_stride);
  return fit;
}

}  // namespace tprimat::engine::gpu
