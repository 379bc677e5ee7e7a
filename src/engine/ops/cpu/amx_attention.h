#pragma once

#include "ops/attention.h"

namespace tprimat::engine::amx {

// bf16_attention.h on a CPU with has_amx(), by strips of 32 queries: products by the tile unit and softmax by the
// vector units take turns.
void attention_forward(const AttentionShape& shape, const AttentionInputs<bf16>& inputs, const HeadRows<bf16>& y,
                       float* logsumexp);
void attention_backward(const AttentionShape& shape, const AttentionGradient<bf16>& gradient);

}  // namespace tprimat::engine::amx
