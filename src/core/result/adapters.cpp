#include "result/adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "result/setting_words.h"

namespace tprimat {
namespace {

using Settings = std::map<std::string, std::string>;
using Names = std::set<std::string, std::less<>>;

// The setting that enables adapters or names their kind, that gives their size, and those that only come with one.
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
  std::string name = without_capitals(key.substr(dot + 1));
  std::replace(name.begin(), name.end(), '-', '_');
  const bool is_size = name == "rank" || name == "r" || name == "dim" || name == "alpha";
  if (dot == std::string::npos || !is_size) return name;
  const std::string parent = short_name(key.substr(0, dot));
  return parent == "lora" || parent == "peft" || parent == "lora_config" ? "lora_" + name : name;
}

bool is_no_adapter(const std::string& value) { return is_off(value) || without_capitals(value) == "full"; }

bool is_of_other_kind(const std::string& name, const std::string& value) {
  const std::string word = without_capitals(value);
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

std::optional<std::string> find_adapters(const Settings& settings) {
  if (const Found frozen = find_any(settings, k_frozen_parts); frozen.on) return frozen.on;
  for (const Names* names : {&k_adapter_switches, &k_adapter_ranks, &k_adapter_details})
    if (const Found found = find_any(settings, *names); found.on || found.any_off) return found.on;
  return std::nullopt;
}

std::optional<std::string> find_adapters(const RunResult& result) {
  return result.effective_config ? find_adapters(*result.effective_config) : std::nullopt;
}

}  // namespace tprimat
