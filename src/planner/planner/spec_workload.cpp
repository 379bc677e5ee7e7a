#include "planner/spec_workload.h"

#include <fmt/format.h>

#include <cmath>

#include "planner/recomputed_share.h"
#include "spec/model_catalogue.h"
#include "spec/pipeline_layout.h"

namespace tprimat::planner {
namespace {

// Whose memory is not counted.
std::string uncountable(const Workload& workload) {
  if (!workload.family->own_trainer) return unpredictable(workload.shape);
  if (workload.shape.experts) return "a mixture of experts";
  return workload.shape.latent_attention ? "a model with latent attention" : unpredictable(workload.shape);
}

// What published tables call DeepSpeed trained with dropout and unfused attention; here both are otherwise.
bool is_described(Framework framework) { return framework != Framework::deep && framework != Framework::mgds; }

Layout layout_of(const TrainSpec& spec) {
  const ParallelSpec& parallel = spec.parallel;
  Layout layout;
  layout.tensor = parallel.tensor, layout.context = parallel.context;
  layout.pipeline = parallel.pipeline, layout.chunks = parallel.virtual_pipeline;
  layout.data = parallel.data, layout.micro_batch = spec.micro_batch_size;
  layout.expert = parallel.expert_ranks(), layout.expert_tensor = parallel.expert_tensor_ranks();
  layout.sharding = static_cast<Sharding>(parallel.zero_stage);
  layout.recompute = spec.recompute;
  layout.sequence_parallel = parallel.sequence_parallel;
  layout.ends_as_layers = parallel.ends_as_layers;
  return layout;
}

bool trains_wide(const Workload& workload, Precision precision) {
  return workload.family->own_trainer && (precision == Precision::fp32 || workload.on_gpu);
}

std::string missing_of(const Workload& workload, Framework framework, Precision precision) {
  if (!is_described(framework)) return std::string(display_name(framework));
  if (const std::string what = uncountable(workload); !what.empty()) return what;
  const bool wide = precision == Precision::fp32 || precision == Precision::tf32;
  if (wide && !trains_wide(workload, precision)) return fmt::format("{} products", enum_name(precision));
  const bool half_sharded =
      workload.family->fp32_shards && workload.layout.sharding != Sharding::weights && workload.layout.data > 1;
  return half_sharded
             ? fmt::format("{} with ZeRO-{}", display_name(framework), static_cast<int>(workload.layout.sharding))
             : "";
}

constexpr double k_same_memory = 0.1;  // drivers count what the firmware keeps, or the binary gigabyte

bool has_memory(const Machine& machine, double gb) {
  return std::fabs(gb * 1e9 / machine.memory_bytes - 1) < k_same_memory;
}

}  // namespace

SpecWorkload workload_of(const TrainSpec& spec, Framework framework, Platform platform) {
  SpecWorkload read;
  Workload& workload = read.workload;
  workload.shape = spec.model;
  workload.sequence_length = spec.sequence_length;
  workload.global_batch = spec.global_batch_size;
  workload.layout = layout_of(spec);
  if (const auto& stages = spec.parallel.pipeline_layout)
    workload.layers_of_places = list_place_layers(*stages).value_or(std::vector<int64_t>());
  // tf32 is fp32 in memory
  workload.precision = parse_enum<PlanPrecision>(enum_name(spec.precision)).value_or(PlanPrecision::fp32);
  workload.keeps_masters = spec.optimizer.master_weights;
  workload.moment_bytes = spec.optimizer.moments == MomentFormat::bf16 ? 2 : 4;
  workload.offload = spec.offload.value_or(Offload::none);
  if (spec.model.is_sparse()) workload.routing = spec.routing.value_or(Routing::learned);
  workload.dispatcher = spec.dispatcher;
  if (spec.recompute == Recompute::selective && spec.recompute_modules) {
    workload.recomputed_modules = *spec.recompute_modules;
    workload.recomputed_share = share_of_modules(workload);
  }
  workload.on_gpu = platform != Platform::cpu;
  workload.family = find_family(enum_name(framework));
  if (workload.family == nullptr) workload.family = find_family("megatron_core");  // where nothing is predicted
  workload.repeats_core = framework != Framework::tita;                            // train_fsdp.py, unlike torchtitan
  // FSDP shares the weights unless it is told otherwise.
  if (workload.family->fully_sharded && spec.parallel.zero_stage == 0) workload.layout.sharding = Sharding::weights;
  read.missing = missing_of(workload, framework, spec.precision);
  read.untimed = read.missing.empty() ? unpredictable(workload.shape) : read.missing;
  return read;
}

TrainSpec with_layout(TrainSpec spec, const Layout& layout) {
  const ParallelSpec before = spec.parallel;
  spec.parallel = parallel_spec(layout);
  spec.parallel.strategy = before.strategy;
  if (before.pipeline == layout.pipeline && before.virtual_pipeline == layout.chunks)
    spec.parallel.pipeline_layout = before.pipeline_layout;
  if (layout.recompute != Recompute::selective) spec.recompute_modules.reset();
  spec.micro_batch_size = layout.micro_batch;
  spec.recompute = layout.recompute;
  return spec;
}

TrainSpec with_layout(TrainSpec spec, const Workload& workload) {
  spec = with_layout(std::move(spec), workload.layout);
  spec.parallel.pipeline_layout = stated_stages(workload);
  const bool selects = workload.layout.recompute == Recompute::selective && !workload.recomputed_modules.empty();
  spec.recompute_modules = selects ? std::optional(workload.recomputed_modules) : std::nullopt;
  return spec;
}

std::optional<Machine> machine_of_device(const std::string& name, std::optional<double> memory_gb) {
  const Machine* machine = find_machine(name);
  if (machine == nullptr) machine = find_printed_machine(name);
  if (machine == nullptr) return std::nullopt;
  if (!memory_gb || has_memory(*machine, *memory_gb)) return *machine;
  const std::string part = machine->id.substr(0, machine->id.find('-'));
  for (const Machine& each : machines())
    if (each.id.substr(0, each.id.find('-')) == part && has_memory(each, *memory_gb)) return each;
  return std::nullopt;
}

}  // namespace tprimat::planner
