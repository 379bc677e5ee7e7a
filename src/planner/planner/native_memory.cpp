#include "planner/native_memory.h"

#include <new>

#include "base/check.h"
#include "memory/training_plan.h"

namespace tprimat::planner {
namespace {

Precision training_precision(PlanPrecision precision) {
  switch (precision) {
    case PlanPrecision::fp32: return Precision::fp32;
    case PlanPrecision::fp16: return Precision::fp16;
    case PlanPrecision::fp8: return Precision::fp8;
    default: return Precision::bf16;
  }
}

TrainSpec training_of(const Workload& workload) {
  TrainSpec spec;
  spec.model = workload.shape.model;
  spec.parallel = parallel_spec(workload.layout);
  spec.precision = training_precision(workload.precision);
  spec.sequence_length = workload.sequence_length;
  spec.micro_batch_size = workload.layout.micro_batch;
  spec.global_batch_size = workload.global_batch;
  spec.recompute = workload.layout.recompute;
  spec.optimizer.master_weights = workload.keeps_masters;
  spec.optimizer.moments = workload.moment_bytes == sizeof(uint16_t) ? MomentFormat::bf16 : MomentFormat::fp32;
  return spec;
}

MemoryEstimate sum_by_part(const ArenaPlan& arena) {
  const auto bytes = [&](Component component) { return static_cast<double>(arena.bytes_of(component)); };
  MemoryEstimate memory;
  memory.weights = bytes(Component::weights);
  memory.gradients = bytes(Component::gradients);
  memory.master_weights = bytes(Component::master_weights);
  memory.moments = bytes(Component::moments);
  memory.activations = bytes(Component::activations);
  memory.logits = bytes(Component::logits);
  memory.gathered = bytes(Component::gathered_weights) + bytes(Component::reduced_gradients);
  memory.buffers = bytes(Component::workspace) + bytes(Component::batch);
  memory.slack = static_cast<double>(arena.allocated_bytes() - arena.total_bytes());
  return memory;
}

}  // namespace

MemoryEstimate plan_native_stage(const Workload& workload, int64_t stage) {
  CHECK(workload.precision != PlanPrecision::fp4);
  const RankPlace most{.tensor = static_cast<int>(workload.layout.tensor - 1), .pipeline = static_cast<int>(stage)};
  try {
    return sum_by_part(plan_training(training_of(workload), most, {!workload.on_gpu, workload.on_gpu}).arena);
  } catch (const std::bad_alloc&) {
    return {.activations = static_cast<double>(k_any_machine)};
  }
}

double plan_native_ranks(const Workload& workload) {
  const auto ranks = static_cast<double>(workload.layout.num_gpus() / workload.layout.pipeline);
  double all = 0;
  for (int64_t stage = 0; stage < workload.layout.pipeline; ++stage)
    all += ranks * plan_native_stage(workload, stage).total();
  return all;
}

MemoryEstimate plan_native_memory(const Workload& workload) {
  MemoryEstimate heaviest;
  for (int64_t stage = 0; stage < workload.layout.pipeline; ++stage) {
    const MemoryEstimate each = plan_native_stage(workload, stage);
    if (each.total() > heaviest.total()) heaviest = each;
  }
  return heaviest;
}

}  // namespace tprimat::planner
