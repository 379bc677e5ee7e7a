#pragma once

#include "ops/attention.h"

namespace tprimat::engine::amx {

// bf16_attention.h on a CPU with has_amx(): the tile unit multiplies for the next and for the last block of scores
// while the vector units work on this one.
void attention_forward(const AttentionShape& shape, const AttentionInputs<bf16>& inputs, const HeadRows<bf16>& y,
                       float* logsumexp);
void attention_backward(const AttentionShape& shape, const AttentionGradient<bf16>& gradient);

}  // namespace tprimat::engine::amx
