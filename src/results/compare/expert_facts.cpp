#include "compare/expert_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "result/expert_summary.h"
#include "result/printed_settings.h"
#include "spec/model_catalogue.h"
#include "text/choice.h"
#include "text/format.h"
#include "text/words.h"

namespace tprimat::results {
namespace {

using Names = std::initializer_list<std::string_view>;

// Frameworks print sections before the name.
const std::string* find_printed(const RunResult& run, Names names) {
  if (!run.effective_config) return nullptr;
  for (const std::string_view name : names)
    for (const char* section : {"", "model.", "training.", "debug.", "model.config."}) {
      const auto found = run.effective_config->find(section + std::string(name));
      if (found != run.effective_config->end() && !found->second.empty()) return &found->second;
    }
  return nullptr;
}

// "None" and "False" are zero, and so is a negative number: Megatron-LM's capacity of -1 limits nothing.
std::optional<double> number_printed(const RunResult& run, Names names) {
  const std::string* text = find_printed(run, names);
  if (text == nullptr) return std::nullopt;
  if (is_off(*text)) return 0.0;
  const auto number = parse_number<double>(*text);
  return number ? std::optional(std::max(0.0, *number)) : std::nullopt;
}

std::optional<bool> switch_printed(const RunResult& run, Names names) {
  const std::string* text = find_printed(run, names);
  return text == nullptr ? std::nullopt : std::optional(!is_off(*text));
}

// "['aux_loss', 'seq_aux_loss']" as its parts, in lower case; nothing where it is not printed.
std::optional<std::vector<std::string>> parts_printed(const RunResult& run, Names names) {
  const std::string* text = find_printed(run, names);
  if (text == nullptr) return std::nullopt;
  std::vector<std::string> parts;
  bool is_inside = false;
  for (const char c : lower_case(*text)) {
    const bool was_inside = is_inside;
    is_inside = std::string_view(" ,[]()'\"").find(c) == std::string_view::npos;
    if (is_inside && !was_inside) parts.emplace_back();
    if (is_inside) parts.back() += c;
  }
  return parts;
}

// "none" for all words of no balancing. A kind without a name here keeps its own.
std::string plain_kind(const std::string& word) {
  if (is_off(word)) return "none";
  return word == "seq_aux_loss" ? std::string(enum_name(LoadBalancing::sequence_aux_loss)) : word;
}

std::string plain_coefficient(const std::string& word) {
  if (is_off(word)) return "0";
  const auto number = parse_number<double>(word);
  return number ? fmt::format("{:g}", std::max(0.0, *number)) : word;
}

bool has_coefficient(const std::string& kind) { return kind.find("aux_loss") != std::string::npos; }

// Several losses may act together, each with its coefficient: in any order, without those that have no effect.
void drop_idle_losses(std::vector<std::string>& kinds, std::vector<std::string>& coefficients) {
  std::vector<std::pair<std::string, std::string>> acting;
  for (size_t i = 0; i < kinds.size(); ++i)
    if (kinds[i] != "none" && !(has_coefficient(kinds[i]) && coefficients[i] == "0"))
      acting.emplace_back(kinds[i], has_coefficient(kinds[i]) ? coefficients[i] : "");
  std::sort(acting.begin(), acting.end());
  kinds.clear(), coefficients.clear();
  for (const auto& [kind, coefficient] : acting) {
    kinds.push_back(kind);
    if (!coefficient.empty()) coefficients.push_back(coefficient);
  }
}

Balancing balancing_printed(const RunResult& run) {
  Balancing printed;
  auto kinds = parts_printed(run, {"moe_router_load_balancing_type"});
  auto coefficients = parts_printed(run, {"moe_aux_loss_coeff", "router_aux_loss_coef", "moe_loss_coeff"});
  if (kinds) std::transform(kinds->begin(), kinds->end(), kinds->begin(), plain_kind);
  if (coefficients)
    std::transform(coefficients->begin(), coefficients->end(), coefficients->begin(), plain_coefficient);
  if (kinds && coefficients && kinds->size() == coefficients->size()) drop_idle_losses(*kinds, *coefficients);
  const auto together = [](const std::vector<std::string>& parts, const char* without) {
    return parts.empty() ? std::string(without) : join(parts, "+");
  };
  if (kinds) printed.kind = together(*kinds, "none");
  if (coefficients) printed.aux_loss = together(*coefficients, "0");
  if (switch_printed(run, {"moe_router_enable_expert_bias"}).value_or(false))
    printed.kind = enum_name(LoadBalancing::bias);
  printed.z_loss = number_printed(run, {"moe_z_loss_coeff", "router_z_loss_coef"});
  return printed;
}

const std::optional<Experts>* experts_in_shape(const RunResult& run) {
  return run.model_info.shape ? &run.model_info.shape->experts : nullptr;
}

// A log that names its model and prints no settings does not tell how it was trained: these are the catalogue's.
bool is_named_only(const RunResult& run) {
  if (run.config_hash || !run.source.format || !run.model_info.shape) return false;
  for (const std::string& name : {run.model_info.name, run.model_info.full_name.value_or("")})
    if (const auto known = find_model(name)) return known->experts == run.model_info.shape->experts;
  return false;
}

std::optional<double> mean_of(const RunResult& run, const std::optional<std::vector<double>>& values) {
  return values ? steady_mean(run, *values) : std::nullopt;
}

}  // namespace

std::optional<bool> is_sparse(const RunResult& run) {
  if (const auto* experts = experts_in_shape(run)) return experts->has_value();
  if (run.experts) return true;
  const auto printed = number_printed(run, {"num_experts", "num_moe_experts"});
  return printed ? std::optional(*printed > 1) : std::nullopt;
}

// Frameworks print the settings of experts for every model.
static bool is_dense(const RunResult& run) { return is_sparse(run) == false; }

std::optional<Routing> routing_of(const RunResult& run) {
  if (is_dense(run)) return std::nullopt;
  if (run.experts && run.experts->routing) return run.experts->routing;
  // Random logits with a bias force the load, though not an even one.
  const std::string* biased = find_printed(run, {"moe_router_force_biased"});
  if (biased != nullptr && lower_case(*biased) != "none" && lower_case(*biased) != "null") return std::nullopt;
  const auto* forced = run.effective_config ? find_forced_balance(*run.effective_config) : nullptr;
  if (forced == nullptr) return std::nullopt;
  return is_off(forced->second) ? Routing::learned : Routing::balanced;
}

std::optional<Dispatcher> dispatcher_of(const RunResult& run) {
  if (is_dense(run)) return std::nullopt;
  if (run.experts && run.experts->dispatcher) return run.experts->dispatcher;
  const std::string* type = find_printed(run, {"moe_token_dispatcher_type"});
  if (type == nullptr) return std::nullopt;
  const std::string* backend = find_printed(run, {"moe_flex_dispatcher_backend"});
  const bool is_flex = lower_case(*type) == "flex";
  return parse_word<Dispatcher>(lower_case(is_flex && backend != nullptr ? *backend : *type));
}

std::optional<double> capacity_of(const RunResult& run) {
  if (is_dense(run)) return std::nullopt;
  if (const auto printed = number_printed(run, {"moe_expert_capacity_factor"})) return printed;
  // Megatron-DeepSpeed prints its capacity even where no token is dropped.
  if (const auto printed = number_printed(run, {"moe_train_capacity_factor"}))
    return switch_printed(run, {"moe_token_dropping"}).value_or(true) ? printed : 0.0;
  const auto* experts = experts_in_shape(run);
  return experts != nullptr && *experts ? std::optional((*experts)->capacity_factor.value_or(0)) : std::nullopt;
}

std::optional<int64_t> prediction_layers_of(const RunResult& run) {
  if (const auto printed = number_printed(run, {"mtp_num_layers"}); printed && *printed < 1000)
    return static_cast<int64_t>(*printed);
  const auto& shape = run.model_info.shape;
  return shape ? std::optional(shape->prediction_layers.value_or(0)) : std::nullopt;
}

Balancing balancing_of(const RunResult& run) {
  Balancing stated = balancing_printed(run);
  const auto* experts = experts_in_shape(run);
  if (experts == nullptr || !*experts || is_named_only(run)) return stated;
  const Experts& shape = **experts;
  if (shape.balancing == LoadBalancing::none && shape.aux_loss_coefficient == 0 && shape.z_loss_coefficient == 0)
    return stated;
  if (!stated.kind) stated.kind = enum_name(shape.balancing);
  if (!stated.aux_loss) stated.aux_loss = fmt::format("{:g}", shape.aux_loss_coefficient);
  if (!stated.z_loss) stated.z_loss = shape.z_loss_coefficient;
  return stated;
}

std::optional<double> load_of(const RunResult& run) {
  if (!run.experts) return std::nullopt;
  return run.experts->load ? run.experts->load : mean_of(run, run.experts->load_values);
}

std::optional<double> dropped_share_of(const RunResult& run) {
  if (run.experts && run.experts->dropped_share) return run.experts->dropped_share;
  if (run.experts)
    if (const auto mean = mean_of(run, run.experts->dropped_values)) return mean;
  return capacity_of(run) == 0.0 ? std::optional(0.0) : std::nullopt;
}

ModelSpec with_all_experts(ModelSpec shape) {
  if (shape.experts) shape.experts->per_token = shape.experts->count;
  return shape;
}

void keep_means(RunResult& run) {
  if (!run.experts) return;
  ExpertFigures& figures = *run.experts;
  figures.load = load_of(run);
  if (!figures.dropped_share) figures.dropped_share = mean_of(run, figures.dropped_values);
  for (auto* series : {&figures.load_values, &figures.dropped_values, &figures.aux_loss_values, &figures.z_loss_values})
    series->reset();
}

}  // namespace tprimat::results
