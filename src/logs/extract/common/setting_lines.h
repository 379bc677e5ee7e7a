#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "extract/common/nested_settings.h"

namespace tprimat::logs {

// "  adam_beta1 ............ 0.9" of Megatron-LM, "arguments training.steps......... 3" of Primus, "lr .... 0.1" of
// DeepSpeed. `updated_or_default`: GPT-NeoX pads the value with dots and appends its origin.
std::optional<Setting> read_dotted_setting(std::string_view text, bool updated_or_default);

// "  train_micro_batch_size_per_gpu  4": the key was too long for dots.
std::optional<Setting> read_undotted_setting(std::string_view text, bool updated_or_default);

// "  grpo_iterations      : 2 (int)" of Primus.
std::optional<Setting> read_typed_setting(std::string_view text);

// A setting that Primus' back end megatron_bridge leaves out, and why: "Skipping config_container.train.train_iters:
// type mismatch (target=int, source=str)", "Retry 1: Removing invalid parameter 'peft' (..".
std::optional<Setting> read_dropped_setting(std::string_view text);

// "  nproc_per_node   : 8" of torchrun, after its log prefix.
std::optional<Setting> read_colon_setting(std::string_view text);

// "setting learning_rate 0.0003" of our adapters.
std::optional<Setting> read_adapter_setting(std::string_view text);

// "torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 4 --bf16": flags and their values, "-" in
// names as "_", "True" for a flag without value.
std::vector<Setting> read_command_line(std::string_view text);

// Words that show the training of adapters or of a part of the model: "peft=LoRA(dim=16)", "LoraConfig(r=16)",
// "Applying LoRA to linear_qkv", "peft_scheme: lora", "Freezing base model parameters".
std::optional<Setting> read_adapters(std::string_view text);

// "num_moe_experts=8", "\"num_local_experts\": 8" within any other line.
std::optional<Setting> read_expert_count(std::string_view text);

// " > padded vocab (size: 50257) with 47 dummy tokens (new size: 50304)" of Megatron-LM: the tokenizer's size.
inline constexpr const char* k_tokenizer_vocabulary = "tokenizer vocab_size";
std::optional<Setting> read_tokenizer_vocabulary(std::string_view text);

// The model's arguments in torchtitan's "Building deepseek_v3 16B with DeepSeekV3ModelArgs(dim=2048, ..,
// moe_args=MoEArgs(num_experts=64, ..), ..)", as "model_args.dim", "model_args.moe_args.num_experts".
std::vector<Setting> read_model_arguments(std::string_view text);

// "exiting program at iteration 40", "exiting program after 2.0 minutes" of Megatron-LM.
std::optional<Setting> read_planned_exit(std::string_view text);

}  // namespace tprimat::logs
