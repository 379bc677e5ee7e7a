#pragma once

#include "ops/attention.h"

namespace tprimat::engine {

// Attention with products of bf16 instead of float ones: by tiles of 64 with AVX512-BF16 (bf16_panels.h), by strips of
// 32 with AMX (amx_attention.h). The probabilities and their gradients are rounded to bf16 between the products, as in
// every flash attention of bf16; sums, maxima and exponentials stay float.
bool has_bf16_attention(const AttentionShape& shape);
void bf16_attention_forward(const AttentionShape& shape, const AttentionInputs<bf16>& inputs, const HeadRows<bf16>& y,
                            float* logsumexp);
void bf16_attention_backward(const AttentionShape& shape, const AttentionGradient<bf16>& gradient);

}  // namespace tprimat::engine
