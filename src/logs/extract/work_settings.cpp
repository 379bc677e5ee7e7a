#include "extract/work_settings.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "extract/scan_text.h"
#include "result/printed_settings.h"
#include "text/words.h"

namespace tprimat::logs {
namespace {

// By the names that follow "model.", "data." and the like: Megatron-LM, NeMo, torchtitan, Hugging Face, DeepSpeed-Chat.
constexpr std::array<std::string_view, 44> k_work_settings = {"attention_dropout",
                                                              "hidden_dropout",
                                                              "mock_data",
                                                              "packing",
                                                              "packed_sequence",
                                                              "pack_sequences",
                                                              "use_packed_sequence",
                                                              "sft_packing",
                                                              "reset_attention_mask",
                                                              "moe_router_force_load_balancing",
                                                              "debug_moe_force_load_balance",
                                                              "moe_force_load_balance",
                                                              "moe_expert_capacity_factor",
                                                              "moe_router_topk",
                                                              "num_experts",
                                                              "num_moe_experts",
                                                              "num_local_experts",
                                                              "n_routed_experts",
                                                              "mtp_num_layers",
                                                              "untie_embeddings_and_output_weights",
                                                              "tie_word_embeddings",
                                                              "rampup_batch_size",
                                                              "lora_rank",
                                                              "lora_r",
                                                              "lora_dim",
                                                              "actor_lora_dim",
                                                              "lora_alpha",
                                                              "lora_enable",
                                                              "use_lora",
                                                              "enable_lora",
                                                              "use_peft",
                                                              "peft",
                                                              "peft_type",
                                                              "peft_scheme",
                                                              "peft_method",
                                                              "finetuning_type",
                                                              "freeze_layers",
                                                              "use_flash_attn",
                                                              "use_flash_attention",
                                                              "attention_backend",
                                                              "attn_implementation",
                                                              "recompute_granularity",
                                                              "fp8",
                                                              "window_size"};

std::string_view last_component(std::string_view key) { return key.substr(key.find_last_of("./") + 1); }

bool is_of_work(std::string_view key) {
  const std::string_view name = last_component(key);
  for (const std::string_view each : k_work_settings)
    if (each == name) return true;
  return false;
}

// "True", "true" and "1" are one word, and so is what is not there.
std::string plain_word(const std::string& value) {
  if (is_off(value)) return "off";
  std::string word = lower_case(value);
  if (word == "true") return "on";
  std::string_view rest = word;
  const Figure number = take_number(rest);
  if (!number.finite() || !trim(rest).empty()) return word;
  return *number == 1 ? "on" : fmt::format("{}", *number);
}

// Absent is off for a switch and for a size of something additional, not for the rest of the model's description.
bool may_be_absent(std::string_view key) {
  const std::string_view name = last_component(key);
  return name != "moe_router_topk" && name != "attention_backend" && name != "attn_implementation" &&
         name != "window_size" && name != "lora_alpha";
}

}  // namespace

std::vector<std::string> differing_work_settings(const std::map<std::string, std::string>& before,
                                                 const std::map<std::string, std::string>& after) {
  std::vector<std::string> differences;
  const auto value_in = [](const std::map<std::string, std::string>& settings, const std::string& key) {
    const auto found = settings.find(key);
    return found == settings.end() ? std::string() : found->second;
  };
  const auto compare = [&](const std::string& key) {
    const bool in_both = before.count(key) + after.count(key) == 2;
    if (!is_of_work(key) || (!in_both && !may_be_absent(key))) return;
    const std::string was = value_in(before, key), is = value_in(after, key);
    if (plain_word(was) != plain_word(is))
      differences.push_back(fmt::format("{} {} and {}", key, was.empty() ? "absent" : was, is.empty() ? "absent" : is));
  };
  for (const auto& [key, value] : before) compare(key);
  for (const auto& [key, value] : after)
    if (before.count(key) == 0) compare(key);
  return differences;
}

}  // namespace tprimat::logs
