#include "extract/logged_routing.h"

#include <fmt/format.h>
#include <array>

#include "extract/common/dumped_settings.h"
#include "extract/common/expert_settings.h"
#include "extract/common/layer_pattern.h"
#include "result/printed_settings.h"
#include "result/summary.h"
#include "text/format.h"

namespace tprimat::logs {
namespace {

using Settings = std::map<std::string, std::string>;
using Series = std::optional<std::vector<double>>;

bool is_printed(const Settings& settings, const char* mark) {
  const auto found = settings.find(mark);
  return found != settings.end() && found->second == k_printed;
}

// Layers whose routers' losses Megatron-LM adds; those that predict further tokens have experts like the last layer.
std::optional<double> routed_layers(const RunResult& result) {
  const auto& shape = result.model_info.shape;
  if (!shape || !shape->is_sparse()) return std::nullopt;
  return static_cast<double>(shape->expert_layers() + shape->prediction_layers.value_or(0));
}

std::optional<double> product(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::optional(*a * *b) : std::nullopt;
}

// A coefficient below 0 is no weight of a loss.
std::optional<double> coefficient(const Settings& settings, const char* name) {
  const auto value = DumpedSettings(settings).number({name});
  return value && *value >= 0 ? value : std::nullopt;
}

// From the printed balancing loss to what was added to the model's loss. Nothing where the log does not tell.
std::optional<double> aux_loss_factor(const RunResult& result, const Settings& settings) {
  if (is_printed(settings, k_layer_mean_loss))
    return product(coefficient(settings, "moe_aux_loss_coeff"), routed_layers(result));
  if (is_printed(settings, k_model_mean_loss)) return coefficient(settings, "router_aux_loss_coef");
  return 1;
}

std::optional<double> z_loss_factor(const RunResult& result, const Settings& settings) {
  if (!is_printed(settings, k_layer_mean_z_loss)) return 1;
  return product(coefficient(settings, "moe_z_loss_coeff"), routed_layers(result));
}

// A shape has names for some of the kinds of Megatron-LM, and one coefficient.
void warn_of_balancing(RunResult& result, const Settings& settings) {
  const auto& shape = result.model_info.shape;
  const std::string_view kind = DumpedSettings(settings).word({"moe_router_load_balancing_type"});
  if (!shape || !shape->is_sparse() || kind.empty() || is_off(kind)) return;
  const auto all = parse_word_list(kind);
  const std::string_view only = all && all->size() == 1 ? all->front() : kind;
  if (only == "aux_loss" || only == "seq_aux_loss" || is_off(only)) return;
  add_warning(result, fmt::format("the shape states the balancing of the experts as {}, for it has no name for "
                                  "moe_router_load_balancing_type {}",
                                  enum_name(shape->experts->balancing), kind.substr(0, 80)));
}

void fill(Series& known, std::vector<double> values, std::optional<double> factor) {
  if (known || !factor || values.empty()) return;
  for (double& value : values) value *= *factor;
  known = std::move(values);
}

template <class Value>
void fill(std::optional<Value>& known, const std::optional<Value>& other) {
  if (!known) known = other;
}

}  // namespace

void fill_experts(RunResult& result, const LoggedFacts& facts, const Settings& settings, const Course& course) {
  ExpertFigures experts = result.experts.value_or(ExpertFigures{});
  fill(experts.routing, facts.routing);
  fill(experts.dispatcher, facts.dispatcher);
  std::vector<std::vector<double>> all =
      all_series(course, std::array{&ExtractedStep::expert_load, &ExtractedStep::dropped_share,
                                    &ExtractedStep::aux_loss, &ExtractedStep::z_loss});
  fill(experts.load_values, std::move(all[0]), 1);
  fill(experts.dropped_values, std::move(all[1]), 1);
  fill(experts.aux_loss_values, std::move(all[2]), aux_loss_factor(result, settings));
  fill(experts.z_loss_values, std::move(all[3]), z_loss_factor(result, settings));
  const bool any = experts.routing || experts.dispatcher || experts.load_values || experts.dropped_values ||
                   experts.aux_loss_values || experts.z_loss_values;
  if (any) result.experts = std::move(experts);
  warn_of_balancing(result, settings);
}

void explain_missing_mfu(RunResult& result) {
  const auto& shape = result.model_info.shape;
  if (!shape || !shape->is_sparse() || result.derived.mfu) return;
  std::vector<std::string> reasons;
  if (result.gpu_info.device_name.empty()) reasons.emplace_back("the log names no GPU: add --device");
  if (!result.precision) reasons.emplace_back("the log does not state the precision: add --precision");
  if (reasons.empty() && !result.derived.peak)
    reasons.push_back(fmt::format("the peak of {} is unknown", result.gpu_info.device_name));
  if (!device_count(result)) reasons.emplace_back("the log does not state the devices: add --devices");
  if (!tokens_per_step(result)) reasons.emplace_back("the log does not state the batch");
  if (steady_step_times(result).empty()) reasons.emplace_back("no step after the warm-up has a time");
  if (!reasons.empty()) add_warning(result, std::string(k_no_sparse_mfu) + join(reasons, "; "));
}

}  // namespace tprimat::logs
