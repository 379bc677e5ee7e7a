#include "run/config_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "extract/common/setting_names.h"

namespace tprimat::suite {
namespace {

constexpr size_t k_beginning_bytes = size_t{16} << 20;
constexpr double k_same = 1e-6;  // relative; logs print six digits and more

struct AskedSetting {
  const char* key;                     // as effective_settings has it, or as the spec
  std::vector<const char*> spellings;  // the frameworks' own names, if the common facts lack the figure
  std::string asked;
};

template <class Value>
std::string show(const Value& value) {
  if constexpr (NamedEnum<Value>)
    return std::string(enum_name(value));
  else
    return fmt::format("{}", value);
}

std::vector<AskedSetting> list_work(const TrainSpec& spec) {
  return {{"sequence_length", {}, show(spec.sequence_length)},
          {"micro_batch_size", {}, show(spec.micro_batch_size)},
          {"global_batch_size", {}, show(spec.global_batch_size)},
          {"steps", {}, show(spec.steps)},
          {"seed", {}, show(spec.seed)},
          {"precision", {}, show(spec.precision)},
          {"recompute", {"recompute"}, show(spec.recompute)},
          {"num_layers", {"num_layers"}, show(spec.model.num_layers)},
          {"hidden_size", {"hidden_size"}, show(spec.model.hidden_size)},
          {"ffn_hidden_size", {"ffn_hidden_size"}, show(spec.model.ffn_hidden_size)},
          {"num_attention_heads", {"num_attention_heads"}, show(spec.model.num_attention_heads)}};
}

std::vector<AskedSetting> list_optimizer(const OptimizerSpec& optimizer) {
  return {{"learning_rate", {}, show(optimizer.learning_rate)},
          {"min_learning_rate", {}, show(optimizer.min_learning_rate)},
          {"schedule", {}, show(optimizer.schedule)},
          {"warmup_steps", {}, show(optimizer.warmup_steps)},
          {"weight_decay", {}, show(optimizer.weight_decay)},
          {"clip_grad_norm", {}, show(optimizer.clip_grad_norm)},
          {"beta1", {"beta1", "adam_beta1"}, show(optimizer.beta1)},
          {"beta2", {"beta2", "adam_beta2"}, show(optimizer.beta2)},
          {"epsilon", {"epsilon", "adam_eps", "adam_epsilon"}, show(optimizer.epsilon)}};
}

std::vector<AskedSetting> list_layout(const TrainSpec& spec) {
  const ParallelSpec& layout = spec.parallel;
  std::vector<AskedSetting> list = {{"gradient_accumulation_steps", {}, show(spec.gradient_accumulation_steps())},
                                    {"num_devices", {}, show(layout.ranks())},
                                    {"tensor_model_parallel_size", {}, show(layout.tensor)},
                                    {"pipeline_model_parallel_size", {}, show(layout.pipeline)},
                                    {"data_parallel_size", {}, show(layout.data)},
                                    {"context_parallel_size", {}, show(layout.context)}};
  if (layout.data > 1)
    list.push_back({"zero_stage", {"zero_stage"}, show(layout.zero_stage)});  // else nothing to share
  return list;
}

std::vector<AskedSetting> list_experts(const TrainSpec& spec) {
  if (!spec.model.is_sparse()) return {};
  const Experts& experts = *spec.model.experts;
  std::vector<AskedSetting> list = {
      {"num_experts", {"num_experts", "num_moe_experts", "num_local_experts"}, show(experts.count)},
      {"experts_per_token", {"moe_router_topk", "num_experts_per_tok"}, show(experts.per_token)},
      {"expert_ffn_hidden_size", {"moe_ffn_hidden_size", "moe_intermediate_size"}, show(experts.ffn_hidden_size)},
      {"expert_model_parallel_size", {}, show(spec.parallel.expert_ranks())},
      {"routing", {}, show(spec.routing.value_or(Routing::learned))}};
  if (spec.parallel.expert_tensor)
    list.push_back({"expert_tensor_parallel_size", {}, show(*spec.parallel.expert_tensor)});
  if (spec.dispatcher) list.push_back({"dispatcher", {}, show(*spec.dispatcher)});
  return list;
}

std::optional<double> number_in(const std::string& text) {
  double value = 0.0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool same_setting(const std::string& asked, const std::string& effective) {
  const auto a = number_in(asked), b = number_in(effective);
  if (a && b) return std::abs(*a - *b) <= k_same * std::max(std::abs(*a), std::abs(*b));
  return asked == effective;
}

class LoggedSettings {
 public:
  explicit LoggedSettings(const logs::ExtractedLog& log) : log_(log), common_(logs::effective_settings(log.facts)) {}

  std::optional<std::string> find(const AskedSetting& setting) const {
    for (const logs::EffectiveSetting& each : common_)
      if (each.key == setting.key) return each.value;
    for (const char* spelling : setting.spellings) {
      const auto found = log_.settings.find(spelling);
      if (found != log_.settings.end() && found->second != "None") return found->second;
    }
    return std::nullopt;
  }

 private:
  const logs::ExtractedLog& log_;
  std::vector<logs::EffectiveSetting> common_;
};

}  // namespace

std::vector<AuditEntry> audit_settings(const TrainSpec& asked, const logs::ExtractedLog& log) {
  const LoggedSettings logged(log);
  std::vector<AuditEntry> differences;
  for (const auto& list : {list_work(asked), list_optimizer(asked.optimizer), list_layout(asked), list_experts(asked)})
    for (const AskedSetting& setting : list)
      if (const auto effective = logged.find(setting); effective && !same_setting(setting.asked, *effective))
        differences.push_back({setting.key, setting.asked, *effective});
  return differences;
}

logs::ReadLog read_log_beginning(const std::string& path) {
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(path, unreadable)) return {};
  std::ifstream file(path, std::ios::binary);
  std::string text(k_beginning_bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  try {
    return logs::read_log_text(std::move(text), {});
  } catch (const Error&) {  // damaged, or of an unknown kind
    return {};
  }
}

}  // namespace tprimat::suite
