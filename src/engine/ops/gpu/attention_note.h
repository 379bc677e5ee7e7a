#pragma once

#include <string>

#include "ops/gpu/attention_choice.h"

namespace tprimat::engine::gpu {

enum class AttentionPass { forward, backward };

// Notes what did a pass of attention: as chosen where `refusal` is null, else our own kernels, because of it. Each
// reason is a warning once where cuDNN was asked for by name, and on GPUs of NVIDIA.
void note_attention(AttentionPass pass, AttentionChoice choice, const std::string* refusal);

}  // namespace tprimat::engine::gpu
