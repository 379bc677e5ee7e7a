#pragma once

#include <string>
#include <vector>

#include "hugging_face/config_keys.h"
#include "hugging_face/model_config.h"

namespace tprimat {

// Families with experts: mixtral, qwen2_moe, qwen3_moe, deepseek_v2, deepseek_v3, gpt_oss.
bool is_sparse_family(HuggingFaceFamily family);

// The family that computes what a mixture of experts computes. Throws Error that says why where there is none.
HuggingFaceFamily find_sparse_family(const ModelSpec& model);

// The keys of experts and of latent attention.
Json sparse_config(const ModelSpec& model, HuggingFaceFamily family);

// Reads these keys into a model whose other sizes are read.
void read_sparse_config(HuggingFaceFamily family, const ConfigKeys& keys, ModelSpec& model, Findings& findings);

}  // namespace tprimat
