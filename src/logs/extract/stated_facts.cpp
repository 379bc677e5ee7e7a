#include "extract/stated_facts.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "extract/common/setting_names.h"
#include "extract/logged_model.h"
#include "extract/scan_text.h"
#include "result/printed_settings.h"

namespace tprimat::logs {
namespace {

using F = LoggedFacts;

template <class T>
bool same_value(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, double>)
    return std::abs(a - b) <= 1e-9 * std::abs(a);
  else
    return a == b;
}

template <class T>
std::string show_value(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return std::string(enum_name(value));
  else
    return fmt::format("{}", value);
}

// Not decisive: the length of the training, and rounded or assumed figures of the machine.
template <class T, class S>
constexpr bool decides(T S::*member) {
  if constexpr (std::is_same_v<T, std::optional<int64_t>>)
    return member != &F::max_steps && member != &F::warmup_steps;
  else if constexpr (std::is_same_v<T, std::optional<double>>)
    return member != &F::gpu_memory_gb && member != &F::peak_flops;
  else
    return true;
}

template <class T>
void add_difference(std::string_view name, const std::optional<T>& a, const std::optional<T>& b,
                    std::vector<std::string>& differences) {
  if (a && b && !same_value(*a, *b))
    differences.push_back(fmt::format("{} {} and {}", name, show_value(*a), show_value(*b)));
}

// By the names that follow "model.", "data." and the like: Megatron-LM, NeMo, torchtitan, Hugging Face, DeepSpeed-Chat.
constexpr std::string_view k_work_settings[] = {"attention_dropout",
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

// "True", "true" and "1" are equal, and so are all absent values.
std::string plain_word(const std::string& value) {
  if (is_off(value)) return "off";
  std::string word = lower_case(value);
  if (word == "true") return "on";
  std::string_view rest = word;
  const Figure number = take_number(rest);
  if (!number.finite() || !trim(rest).empty()) return word;
  return *number == 1 ? "on" : fmt::format("{}", *number);
}

// Absent means off for switches and for sizes of optional parts, but not for the rest of the model's description.
bool may_be_absent(std::string_view key) {
  const std::string_view name = last_component(key);
  return name != "moe_router_topk" && name != "attention_backend" && name != "attn_implementation" &&
         name != "window_size" && name != "lora_alpha";
}

// Settings of the work that two dumps state differently, as "attention_dropout 0.0 and 0.1". A setting that only one
// of them names counts as off in the other.
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

}  // namespace

StatedFacts gather_facts(const ExtractedLog& log, const ExtractedLog& common) {
  StatedFacts stated{log.facts, log.settings};
  stated.settings.insert(common.settings.begin(), common.settings.end());
  apply_settings(stated.settings, stated.facts);
  merge_facts(stated.facts, common.facts);
  return stated;
}

void merge_facts(LoggedFacts& facts, const LoggedFacts& other) {
  for_each_field<LoggedFacts>([&](const auto& fact) {
    if (!(facts.*fact.member)) facts.*fact.member = other.*fact.member;
  });
}

std::vector<std::string> differing_facts(const StatedFacts& a, const StatedFacts& b) {
  std::vector<std::string> differences;
  for_each_field<LoggedFacts>([&](const auto& fact) {
    if (decides(fact.member)) add_difference(fact.key, a.facts.*fact.member, b.facts.*fact.member, differences);
  });
  const LoggedShape one = read_logged_shape(a.settings), other = read_logged_shape(b.settings);
  for_each_field<LoggedShape>(
      [&](const auto& size) { add_difference(size.key, one.*size.member, other.*size.member, differences); });
  // A start that repeats the settings of the run before states all of its settings.
  if (differences.empty() && repeats_facts(a, b)) return differing_work_settings(a.settings, b.settings);
  return differences;
}

bool states_decisive_fact(const LoggedFacts& facts) {
  bool any = false;
  for_each_field<LoggedFacts>([&](const auto& fact) { any |= decides(fact.member) && facts.*fact.member; });
  return any;
}

bool repeats_facts(const StatedFacts& before, const StatedFacts& again) {
  constexpr int k_min_repeated = 3;
  int repeated = 0;
  for_each_field<LoggedFacts>([&](const auto& fact) {
    const auto &was = before.facts.*fact.member, &is = again.facts.*fact.member;
    repeated += was && is && same_value(*was, *is) ? 1 : 0;
  });
  return repeated >= k_min_repeated;
}

}  // namespace tprimat::logs
