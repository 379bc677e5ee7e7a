#pragma once

#include <optional>
#include <string>

#include "extract/common/dumped_settings.h"
#include "spec/model_spec.h"

// The sparse parts of a model as a configuration dump describes them: arguments of Megatron-LM and those upon it
// (Primus, Megatron-Bridge, NeMo, Megatron-DeepSpeed), a Hugging Face config, torchtitan's model arguments.
namespace tprimat::logs {

// Fills in the experts of a model whose layers and dense MLP are known. False, with the reason, where the dump does not
// state them, or where no Experts describe them.
bool read_experts(const DumpedSettings& dump, ModelSpec& model, std::string& why_not);

// Latent attention and the width of a head that belongs to it; nothing where heads are plain.
void read_latent_attention(const DumpedSettings& dump, ModelSpec& model);

// Sliding window, the layers without it, and sinks.
void read_window(const DumpedSettings& dump, ModelSpec& model);

// The Mamba-2 mixers of a hybrid, by Megatron-LM's pattern of its layers. False, with the reason, for other hybrids.
bool read_mixers(const DumpedSettings& dump, ModelSpec& model, std::string& why_not);

// Layers that predict further tokens, where the framework trains them.
void read_prediction_layers(const DumpedSettings& dump, ModelSpec& model);

// What makes the FLOPs of a model uncountable: attention that chooses its keys, layers of several shapes. Empty:
// nothing that the dump states.
std::string find_uncountable(const DumpedSettings& dump);

}  // namespace tprimat::logs
