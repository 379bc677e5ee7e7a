#include <fmt/format.h>

#include "base/error.h"
#include "claim/claim.h"
#include "planner/own_results.h"
#include "result/metrics.h"
#include "result/summary.h"

namespace tprimat::planner {
namespace {

using Cells = std::map<std::string, std::string, std::less<>>;

void set_count(Cells& cells, const char* column, const std::optional<int64_t>& value) {
  if (value && *value > 0) cells[column] = std::to_string(*value);
}

[[noreturn]] void refuse(const std::string& what, const std::string& path) {
  throw Error(Problem{fmt::format("{}, so the result cannot be judged as a claim", what), path,
                      "state model, GPU and rate as options instead: see tprimat claim --help"});
}

void fill_settings(Cells& cells, const RunResult& result) {
  const TrainingConfig& training = result.training_config;
  const ParallelismConfig& layout = result.parallelism_config;
  set_count(cells, "seq", training.sequence_length);
  set_count(cells, "gbs", training.global_batch_size);
  set_count(cells, "mbs", training.micro_batch_size);
  set_count(cells, "tp", layout.tensor_model_parallel_size);
  set_count(cells, "pp", layout.pipeline_model_parallel_size);
  set_count(cells, "vp", layout.virtual_pipeline_model_parallel_size);
  set_count(cells, "cp", layout.context_parallel_size);
  set_count(cells, "ep", layout.expert_model_parallel_size);
  set_count(cells, "n_gpus", device_count(result));
  if (training.recompute) cells["recompute"] = *training.recompute;
}

bool trains_a_part(const RunResult& result) {
  const auto& trained = result.model_info.trainable_parameters;
  return trained && result.model_info.num_parameters && *trained < *result.model_info.num_parameters / 2;
}

}  // namespace

Claim claim_of_row(const PublishedRow& row) {
  return {row, {}, parse_enum<Convention>(row.cell("flop_convention")), {}};
}

Claim claim_of_result(const RunResult& result, const std::string& path) {
  const auto rate = result.derived.tokens_per_second_per_gpu;
  if (result.status != RunStatus::complete)
    refuse(fmt::format("the run has status {}", enum_name(result.status)), path);
  if (!result.model_info.shape) refuse("it has no model shape", path);
  if (const auto problems = check_model(*result.model_info.shape, path); !problems.empty())
    refuse(problems.front().what, path);
  if (!result.precision) refuse("it has no precision", path);
  if (!result.training_config.sequence_length) refuse("it has no sequence length", path);
  if (!rate || !(rate->value > 0)) refuse("it has no tokens/s", path);
  Claim claim;
  claim.shape = result.model_info.shape;
  Cells& cells = claim.row.cells;
  cells["model"] = result.model_info.full_name.value_or(result.model_info.name);
  cells["gpu"] = result.gpu_info.device_name;
  cells["precision"] = enum_name(*result.precision);
  cells["tokens_per_s_per_gpu"] = fmt::format("{:.3f}", rate->value);
  if (result.framework) cells["framework"] = enum_name(*result.framework);
  if (trains_a_part(result)) cells["notes"] = "LoRA";
  fill_settings(cells, result);
  const std::vector<OwnObservation> observed = observe_results({{path, result}}, {});
  if (!observed.empty() && observed.front().observed) claim.workload = observed.front().observed->workload;
  return claim;
}

}  // namespace tprimat::planner
