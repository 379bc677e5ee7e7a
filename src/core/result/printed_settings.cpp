#include "result/printed_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "result/summary.h"
#include "text/words.h"

namespace tprimat {
namespace {

using Settings = std::map<std::string, std::string>;

// NeMo and torchtitan print sections before the name.
const Settings::value_type* find_entry(const Settings& settings, std::string_view name) {
  for (const char* section : {"", "model.", "training."})
    if (const auto found = settings.find(section + std::string(name)); found != settings.end()) return &*found;
  return nullptr;
}

const std::string* find_setting(const Settings& settings, std::string_view name) {
  const auto* found = find_entry(settings, name);
  return found != nullptr ? &found->second : nullptr;
}

bool is_unstated(std::string_view value) { return value.empty() || value == "None" || value == "null"; }

// Zero and below let the framework choose.
std::optional<int64_t> size_of(const Settings& settings, std::string_view name) {
  const std::string* text = find_setting(settings, name);
  const auto size = text != nullptr ? parse_number<int64_t>(*text) : std::nullopt;
  return size && *size > 0 ? size : std::nullopt;
}

std::optional<int64_t> of_shape(const RunResult& result, int64_t ModelSpec::*size) {
  const auto& shape = result.model_info.shape;
  return shape ? std::optional((*shape).*size) : std::nullopt;
}

std::optional<int64_t> of_experts(const RunResult& result, int64_t Experts::*size) {
  const auto& shape = result.model_info.shape;
  return shape && shape->experts ? std::optional((*shape->experts).*size) : std::nullopt;
}

struct PrintedSize {
  const char* name;
  std::optional<int64_t> stated;
};

// Of a result with an effective_config.
std::vector<PrintedSize> printed_sizes(const RunResult& result) {
  const TrainingConfig& t = result.training_config;
  const ParallelismConfig& p = result.parallelism_config;
  // The printed batch is the one that a ramp-up leads to, the stated one that of the steps that count.
  const bool grows = names_ramp_up(*result.effective_config);
  return {{"global_batch_size", grows ? std::nullopt : t.global_batch_size},
          {"micro_batch_size", t.micro_batch_size},
          {"seq_length", t.sequence_length},
          {"world_size", device_count(result)},
          {"tensor_model_parallel_size", p.tensor_model_parallel_size},
          {"pipeline_model_parallel_size", p.pipeline_model_parallel_size},
          {"context_parallel_size", p.context_parallel_size},
          {"expert_model_parallel_size", p.expert_model_parallel_size},
          {"expert_tensor_parallel_size", p.expert_tensor_parallel_size},
          {"parallelism.expert_parallel_degree", p.expert_model_parallel_size},
          {"parallelism.expert_tensor_parallel_degree", p.expert_tensor_parallel_size},
          {"num_experts", of_experts(result, &Experts::count)},
          {"num_moe_experts", of_experts(result, &Experts::count)},
          {"moe_router_topk", of_experts(result, &Experts::per_token)},
          {"moe_ffn_hidden_size", of_experts(result, &Experts::ffn_hidden_size)},
          {"moe_shared_expert_intermediate_size", of_experts(result, &Experts::shared_ffn_hidden_size)},
          {"num_layers", of_shape(result, &ModelSpec::num_layers)},
          {"hidden_size", of_shape(result, &ModelSpec::hidden_size)}};
}

// As Megatron-LM, Megatron-Bridge, NeMo and the versions of torchtitan print it.
constexpr std::array k_forced_balance = {"moe_router_force_load_balancing",
                                         "model.config.moe_router_force_load_balancing",
                                         "debug.moe_force_load_balance",
                                         "training.debug_moe_force_load_balance",
                                         "debug_moe_force_load_balance",
                                         "moe_force_load_balance",
                                         "model_args.moe_args._debug_force_load_balance"};

void compare_routing(const RunResult& result, std::vector<Contradiction>& found) {
  const auto routing = result.experts ? result.experts->routing : std::nullopt;
  const auto* forced = find_forced_balance(*result.effective_config);
  if (forced == nullptr || !routing || (*routing == Routing::learned) == is_off(forced->second)) return;
  found.push_back({fmt::format("{}, which the framework printed", forced->first), std::string(enum_name(*routing)),
                   forced->second, Contradiction::Kind::settings});
}

using Names = std::set<std::string, std::less<>>;

// Settings that enable adapters or name their kind, that give their size, and that occur only with adapters.
const Names k_adapter_switches = {"use_lora",     "lora",        "use_peft",        "peft",        "peft_type",
                                  "peft_scheme",  "peft_method", "use_dora",        "lora_enable", "enable_lora",
                                  "use_adapters", "qlora",       "finetuning_type", "adapter"};
const Names k_adapter_ranks = {"lora_rank", "lora_r", "lora_dim", "actor_lora_dim", "adapter_dim"};
const Names k_adapter_details = {"lora_alpha",          "lora_target",    "lora_targets",
                                 "lora_target_modules", "target_modules", "lora_modules"};
const Names k_variants = {"use_dora", "qlora"};  // off, adapters may still be of another kind
const Names k_frozen_parts = {"freeze_layers", "num_frozen_layers", "freeze_base_model"};
const Names k_other_words = {"adapter", "finetuning_type"};  // other programs mean other things: the value decides

// "--lora-rank", "model.peft.lora_rank" and "lora_rank" are named by their last component; "lora.rank" by both.
std::string short_name(const std::string& key) {
  const size_t dot = key.find_last_of("./");
  std::string name = lower_case(key.substr(dot + 1));
  std::replace(name.begin(), name.end(), '-', '_');
  const bool is_size = name == "rank" || name == "r" || name == "dim" || name == "alpha";
  if (dot == std::string::npos || !is_size) return name;
  const std::string parent = short_name(key.substr(0, dot));
  return parent == "lora" || parent == "peft" || parent == "lora_config" ? "lora_" + name : name;
}

bool is_no_adapter(const std::string& value) { return is_off(value) || lower_case(value) == "full"; }

bool is_of_other_kind(const std::string& name, const std::string& value) {
  const std::string word = lower_case(value);
  return k_other_words.count(name) > 0 && !is_no_adapter(value) && word.find("lora") == std::string::npos &&
         word.find("freeze") == std::string::npos;
}

// Whether any setting of these names is on, or all that are there are off; nothing where none is there.
struct Found {
  std::optional<std::string> on;
  bool any_off = false;
};

Found find_any(const Settings& settings, const Names& names) {
  constexpr size_t k_shown = 40;
  Found found;
  for (const auto& [key, value] : settings) {
    const std::string name = short_name(key);
    if (names.count(name) == 0 || is_of_other_kind(name, value)) continue;
    if (is_no_adapter(value))
      found.any_off |= k_variants.count(name) == 0;
    else if (!found.on)
      found.on = fmt::format("{} {}", key, value.substr(0, k_shown));
  }
  return found;
}

}  // namespace

bool names_ramp_up(const Settings& settings) {
  for (const char* name : {"rampup_batch_size", "rampup-batch-size"})
    if (const std::string* found = find_setting(settings, name)) return !is_off(*found);
  return false;
}

void compare_printed_settings(const RunResult& result, std::vector<Contradiction>& found) {
  if (!result.effective_config) return;
  const Settings& settings = *result.effective_config;
  const auto add = [&](const char* name, const std::string& stated, const std::string& printed) {
    found.push_back(
        {fmt::format("{}, which the framework printed", name), stated, printed, Contradiction::Kind::settings});
  };
  for (const auto& [name, stated] : printed_sizes(result))
    if (const auto printed = size_of(settings, name); printed && stated && *stated != *printed)
      add(name, fmt::format("{}", *stated), fmt::format("{}", *printed));
  const std::string* fp8 = find_setting(settings, "fp8");
  if (fp8 != nullptr && !is_off(*fp8) && result.precision && *result.precision != Precision::fp8)
    add("fp8", std::string(enum_name(*result.precision)), "fp8 " + *fp8);
  compare_routing(result, found);
  const auto& shape = result.model_info.shape;
  if (!shape || shape->is_sparse()) return;
  for (const char* name : {"expert_model_parallel_size", "parallelism.expert_parallel_degree"})
    if (const auto ranks = size_of(settings, name); ranks && *ranks > 1)
      add(name, "a dense model", fmt::format("{}", *ranks));
}

const Settings::value_type* find_forced_balance(const Settings& settings) {
  const Settings::value_type* off = nullptr;
  for (const char* name : k_forced_balance) {
    const auto* found = find_entry(settings, name);
    if (found == nullptr || is_unstated(found->second)) continue;
    if (!is_off(found->second)) return found;
    if (off == nullptr) off = found;
  }
  return off;
}

std::optional<std::string> find_adapters(const Settings& settings) {
  if (const Found frozen = find_any(settings, k_frozen_parts); frozen.on) return frozen.on;
  for (const Names* names : {&k_adapter_switches, &k_adapter_ranks, &k_adapter_details})
    if (const Found found = find_any(settings, *names); found.on || found.any_off) return found.on;
  return std::nullopt;
}

std::optional<std::string> find_adapters(const RunResult& result) {
  return result.effective_config ? find_adapters(*result.effective_config) : std::nullopt;
}

bool is_off(std::string_view value) {
  const std::string word = lower_case(value);
  for (const std::string_view off : {"", "none", "null", "false", "no", "off", "[]", "{}"})
    if (word == off) return true;
  return word.front() == '0' && word.find_first_not_of("0.") == std::string::npos;
}

}  // namespace tprimat
