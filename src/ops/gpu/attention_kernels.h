#pragma once

// Our own kernels behind attention_forward and attention_backward (gpu_ops.h), contracts as there. shape has at least
// one query, and heads of at most k_most_head_dim.
#include <initializer_list>

#include "ops/attention.h"
#include "ops/gpu/element.h"

namespace tprimat::gpu {

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

// Whether heads can be read and written 16 bytes at a time.
template <class T>
bool heads_fit_packs(const AttentionShape& shape, std::initializer_list<HeadRows<const T>> all) {
  bool fit = shape.head_dim % Pack<T>::k_size == 0;
  for (const HeadRows<const T>& rows : all)
    fit = fit && fits_packs<T>({rows.data}, {rows.row_stride, rows.sequence_stride});
  return fit;
}

}  // namespace tprimat::gpu
