#include "extract/common/expert_settings.h"

#include <fmt/format.h>

#include "extract/common/dumped_settings.h"
#include "result/printed_settings.h"

namespace tprimat::logs {
namespace {

using Settings = std::map<std::string, std::string>;

constexpr DumpedSettings::Names k_counts = {"num_experts",      "num_moe_experts", "num_local_experts",
                                            "n_routed_experts", "moe_num_experts", "model_args.moe_args.num_experts"};

// torchtitan has models of both kinds in one class.
bool is_dense_by_switch(const DumpedSettings& dump) {
  const std::string_view enabled = dump.word({"model_args.moe_enabled"});
  return !enabled.empty() && is_off(enabled);
}

std::optional<Dispatcher> flexible_backend(const DumpedSettings& dump) {
  if (const auto backend = parse_enum<Dispatcher>(dump.word({"moe_flex_dispatcher_backend"}))) return backend;
  return dump.is_true({"moe_enable_deepep"}) ? std::optional(Dispatcher::deepep) : std::nullopt;
}

// "num_experts NaN": a value that gives no number does not show a dense model.
std::string find_unreadable_count(const DumpedSettings& dump) {
  if (dump.whole(k_counts) || is_dense_by_switch(dump)) return "";
  for (const char* key : k_counts)
    if (const std::string_view value = dump.word({key}); !value.empty() && dump.number({key}).value_or(2) > 1)
      return fmt::format("{} {}", key, value.substr(0, 40));
  return "";
}

}  // namespace

std::optional<int64_t> stated_experts(const Settings& settings) {
  const DumpedSettings dump(settings);
  const auto count = dump.whole(k_counts);
  return count && *count > 1 && !is_dense_by_switch(dump) ? count : std::nullopt;
}

std::string find_routing(const Settings& settings) {
  const DumpedSettings dump(settings);
  if (std::string unreadable = find_unreadable_count(dump); !unreadable.empty()) return unreadable;
  if (dump.has("num_experts") || dump.has("num_moe_experts")) return "";  // "None" is an answer
  for (const char* printed : {k_layer_mean_loss, k_added_loss, k_model_mean_loss})
    if (dump.word({printed}) == k_printed) return printed;
  for (const char* key :
       {"expert_model_parallel_size", "moe_expert_parallel_size", "parallelism.expert_parallel_degree"})
    if (const auto ranks = dump.whole({key}); ranks && *ranks > 1)
      return std::string(key) + " " + std::to_string(*ranks);
  return "";
}

bool shows_experts(const Settings& settings) {
  return stated_experts(settings).has_value() || !find_routing(settings).empty();
}

std::optional<Routing> stated_routing(const Settings& settings) {
  const DumpedSettings dump(settings);
  if (!dump.word({"moe_router_force_biased"}).empty()) return std::nullopt;
  const auto* forced = find_forced_balance(settings);
  if (forced == nullptr) return std::nullopt;
  return is_off(forced->second) ? Routing::learned : Routing::balanced;
}

std::optional<Dispatcher> stated_dispatcher(const Settings& settings) {
  const DumpedSettings dump(settings);
  if (dump.is_true({"use_turbo_deepep"})) return Dispatcher::deepep;  // Primus
  const std::string_view type = dump.word({"moe_token_dispatcher_type"});
  if (type == "flex") return flexible_backend(dump);
  if (type == "alltoall_seq") return Dispatcher::alltoall;
  if (const auto named = parse_enum<Dispatcher>(type)) return named;
  const std::string_view backend = dump.word({"parallelism.expert_parallel_comm_backend"});  // torchtitan
  return backend == "standard" ? std::optional(Dispatcher::alltoall) : parse_enum<Dispatcher>(backend);
}

}  // namespace tprimat::logs
