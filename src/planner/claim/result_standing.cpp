#include "claim/neighbours.h"
#include "planner/spec_workload.h"
#include "result/printed_settings.h"
#include "result/summary.h"
#include "text/enum_names.h"

namespace tprimat::planner {
namespace {

constexpr int64_t k_max_length = int64_t{1} << 24;  // tokens; more is no training's

std::optional<RunFacts> facts_of(const RunResult& result) {
  const auto& shape = result.model_info.shape;
  const auto& length = result.training_config.sequence_length;
  if (result.platform == Platform::cpu || !shape || !result.precision || !length || *length < 1) return std::nullopt;
  if (*length > k_max_length || !check_model(*shape, "").empty()) return std::nullopt;
  const auto machine = machine_of_device(result.gpu_info.device_name, result.gpu_info.total_memory_gb);
  const auto precision = parse_enum<PlanPrecision>(enum_name(*result.precision));
  if (!machine || !precision || machine->peak(*precision) <= 0) return std::nullopt;
  RunFacts facts;
  facts.model = result.model_info.name, facts.shape = *shape;
  const ParameterCount count = count_parameters(*shape);
  facts.parameters = static_cast<double>(count.total());
  facts.active_parameters = static_cast<double>(count.active());
  facts.machine = *machine, facts.precision = *precision;
  facts.sequence_length = *length, facts.gpus = device_count(result).value_or(0);
  const auto& trained = result.model_info.trainable_parameters;
  facts.trains_adapters = find_adapters(result) || (trained && static_cast<double>(*trained) < facts.parameters / 2);
  return facts;
}

}  // namespace

std::optional<PublishedStanding> standing_of(const RunResult& result, double tokens_per_second_per_gpu) {
  if (result.status != RunStatus::complete || !(tokens_per_second_per_gpu > 0)) return std::nullopt;
  const auto facts = facts_of(result);
  return facts ? standing_of(*facts, tokens_per_second_per_gpu, built_in_runs()) : std::nullopt;
}

std::optional<PublishedStanding> standing_of(const RunResult& result) {
  const auto& rate = result.derived.tokens_per_second_per_gpu;
  return rate ? standing_of(result, rate->value) : std::nullopt;
}

}  // namespace tprimat::planner
