#include "planner/memory.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "base/check.h"
#include "memory/training_plan.h"

namespace tprimat::planner {
namespace {

TrainSpec training_of(const Workload& workload) {
  TrainSpec spec;
  spec.model = workload.shape;
  spec.parallel = parallel_spec(workload.layout);
  spec.precision = parse_enum<Precision>(enum_name(workload.precision)).value_or(Precision::bf16);
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

double data_ranks(const Workload& workload) {
  return static_cast<double>(workload.layout.data * workload.layout.context);
}

// Ranks that have the same routed experts.
double expert_data_ranks(const Workload& workload) {
  const Layout& layout = workload.layout;
  return std::max(1.0, data_ranks(workload) * static_cast<double>(layout.tensor) /
                           static_cast<double>(layout.expert * layout.expert_tensor));
}

// Weights whose state a rank keeps where the ranks that have them alike share it.
double shared_out(const Workload& workload, const RankWeights& weights) {
  const double experts = weights.experts > 0 ? weights.experts / expert_data_ranks(workload) : 0;
  return weights.common / data_ranks(workload) + experts;
}

double gradient_bytes(const Workload& workload) {
  if (workload.gradient_bytes > 0) return workload.gradient_bytes;
  return workload.family->fp32_gradients ? 4 : k_half_bytes;
}

// DeepSpeed's ZeRO-1: 16-bit gradients on every rank; fp16 makes an fp32 copy of the rank's share, bf16 sums all in
// fp32.
double deepspeed_gradients(const Workload& workload, const RankWeights& weights) {
  const double summed = workload.precision == PlanPrecision::fp16 ? shared_out(workload, weights) : weights.total();
  return k_half_bytes * weights.total() + 4 * summed;
}

// PyTorch's FSDP: fp32 shards, from which each layer is gathered in 16 bits; a pipeline keeps the gathered weights and
// the unsharded gradients over its micro-batches.
void add_fp32_shards(MemoryEstimate& memory, const Workload& workload, double weights) {
  memory.weights = 0;
  if (workload.layout.pipeline == 1) {
    // the table that makes the scores, and its gradient
    memory.gathered += 2 * k_half_bytes * static_cast<double>(workload.shape.vocab_size * workload.shape.hidden_size) /
                       static_cast<double>(workload.layout.tensor);
    return;
  }
  memory.gathered = k_half_bytes * weights;
  memory.gradients += 4 * weights;
}

double largest_layer_weights(const Workload& workload) {
  const double dense = layer_rank_weights(workload, LayerKind::dense).total();
  if (!workload.shape.experts) return dense;
  return std::max(dense, layer_rank_weights(workload, LayerKind::experts).total());
}

// Frozen weights have no states; those of adapters of rank 16 beside attention's products are few.
void add_frozen_states(MemoryEstimate& memory, const Workload& workload, const RankWeights& weights) {
  constexpr double k_rank = 16, k_products = 2, k_states = 4 + 4 + 4 + 4;
  const ModelSpec& m = workload.shape;
  const double adapters = k_products * 2 * k_rank * static_cast<double>(m.hidden_size * m.num_layers) /
                          static_cast<double>(workload.layout.pipeline);
  memory.weights = workload.weight_bytes * weights.total() + k_half_bytes * adapters;
  memory.moments = k_states * adapters;
}

void add_states(MemoryEstimate& memory, const Workload& workload, const RankWeights& weights) {
  if (workload.trains_adapters) return add_frozen_states(memory, workload, weights);
  const double all = weights.total(), part = shared_out(workload, weights);
  const Sharding sharding = workload.layout.sharding;
  const auto share = [&](Sharding from) { return sharding >= from ? part : all; };
  memory.weights = workload.weight_bytes * share(Sharding::weights);
  memory.gradients = gradient_bytes(workload) * share(Sharding::gradients);
  memory.master_weights = workload.keeps_masters ? 4 * share(Sharding::optimizer) : 0;
  memory.moments = 2 * workload.moment_bytes * share(Sharding::optimizer) * (1 - workload.offloaded_moments);
  if (workload.family->deepspeed_states) memory.gradients = deepspeed_gradients(workload, weights);
  if (sharding == Sharding::weights) memory.gathered = 2 * k_half_bytes * largest_layer_weights(workload);
  if (workload.family->fp32_shards) add_fp32_shards(memory, workload, all);
  if (workload.offload != Offload::none) memory.master_weights = memory.moments = memory.gradients = 0;
  if (workload.offload == Offload::parameters) memory.weights = 0;
}

// 16 bits, fp32 and gradient; torchtitan's loss also makes the logarithm of the softmax where nothing compiles it.
double bytes_per_score(const Workload& workload) {
  if (workload.family->fused_loss) return 2 + 2;
  if (!workload.family->operator_recompute) return 2 + 4 + 4;
  return workload.compiled_loss ? 2 + 4 : 2 + 4 + 4 + 4;
}

// Each layer that predicts a further token has scores of its own.
double logit_bytes(const Workload& workload) {
  const Layout& layout = workload.layout;
  const ModelSpec& m = workload.shape;
  const double rows = static_cast<double>(layout.micro_batch * workload.sequence_length) /
                      static_cast<double>(layout.context * layout.tensor);
  return rows * static_cast<double>(m.vocab_size * (1 + m.prediction_layers.value_or(0))) * bytes_per_score(workload);
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

double MemoryEstimate::states() const { return weights + gradients + master_weights + moments; }

double MemoryEstimate::total() const { return bytes(MemoryFigure::device); }
double MemoryEstimate::needed() const { return total() - slack; }

double MemoryEstimate::bytes(MemoryFigure figure) const {
  const double allocated = states() + activations + logits + gathered + buffers;
  if (figure == MemoryFigure::allocated) return allocated;
  return allocated + slack + (figure == MemoryFigure::device ? context : 0);
}

std::vector<std::pair<std::string, double>> MemoryEstimate::parts() const {
  return {{"weights", weights}, {"gradients", gradients},       {"master weights", master_weights},
          {"moments", moments}, {"activations", activations},   {"logits", logits},
          {"buffers", buffers}, {"gathered weights", gathered}, {"slack", slack},
          {"context", context}};
}

namespace {

// A layer that is computed again is whole for a while.
double repeated_layer_bytes(const Workload& workload, const StageLayers& layers, double load) {
  if (workload.layout.recompute != Recompute::full && !workload.selects_operators()) return 0;
  const double dense = whole_layer_activation_bytes(workload, LayerKind::dense);
  if (layers.experts + layers.prediction == 0 || !workload.shape.experts) return dense;
  return std::max(dense, whole_layer_activation_bytes(workload, LayerKind::experts, load));
}

// Where gradients are summed in 16 bits the optimizer takes its share of them in fp32, when activations are gone.
void add_wide_gradients(MemoryEstimate& memory, const Workload& workload, const RankWeights& weights) {
  if (gradient_bytes(workload) >= 4 || workload.trains_adapters || workload.family->deepspeed_states) return;
  memory.buffers += std::max(0.0, 4 * shared_out(workload, weights) - memory.activations - memory.logits);
}

// What does not depend on the stage.
struct FrameworkMemory {
  double fixed = 0, slack = 0, context = 0, load = 0;
};
FrameworkMemory framework_memory(const Workload& workload, const ParameterSet& parameters) {
  const std::string& family = workload.family->id;
  return {parameters.scoped("fixed_memory", family, 0), parameters.scoped("allocator_slack", family, 0),
          parameters.scoped("context_memory", family, 0), kept_load(workload, parameters)};
}

MemoryEstimate estimate_stage(const Workload& workload, const FrameworkMemory& framework, int64_t stage) {
  MemoryEstimate memory;
  const RankWeights weights = stage_weights(workload, stage);
  add_states(memory, workload, weights);
  memory.activations = stage_activation_bytes(workload, stage, framework.load) +
                       repeated_layer_bytes(workload, layers_of_stage(workload, stage), framework.load);
  if (stage == workload.layout.pipeline - 1) memory.logits = logit_bytes(workload);
  add_wide_gradients(memory, workload, weights);
  memory.buffers += framework.fixed;
  memory.slack = framework.slack * memory.bytes(MemoryFigure::allocated);
  memory.context = framework.context;
  return memory;
}

}  // namespace

double kept_load(const Workload& workload, const ParameterSet& parameters) {
  if (!workload.shape.experts) return 0;
  const bool chosen = workload.expert_load == 0 && workload.routing == Routing::learned;
  if (!chosen || workload.layout.expert <= 1) return load_of_fullest_rank(workload);
  const auto ranks = static_cast<double>(workload.layout.expert);
  const double load = std::min(ranks, 1 + parameters.scoped("learned_memory", "", 0) * std::log2(ranks) / 3);
  const auto& capacity = workload.shape.experts->capacity_factor;
  return capacity ? std::min(load, *capacity) : load;
}

MemoryEstimate estimate_stage_memory(const Workload& workload, const ParameterSet& parameters, int64_t stage) {
  return estimate_stage(workload, framework_memory(workload, parameters), stage);
}

MemoryEstimate estimate_memory(const Workload& workload, const ParameterSet& parameters) {
  if (workload.family->own_trainer) return plan_native_memory(workload);
  const FrameworkMemory framework = framework_memory(workload, parameters);
  MemoryEstimate most;
  workload.visit_stages([&](int64_t stage) {
    const MemoryEstimate each = estimate_stage(workload, framework, stage);
    if (each.total() > most.total()) most = each;
  });
  return most;
}

MemoryEstimate estimate_memory_within(const Workload& workload, const ParameterSet& parameters, double bytes) {
  MemoryEstimate memory = estimate_memory(workload, parameters);
  if (!workload.family->own_trainer) memory.slack = std::clamp(bytes - memory.needed(), 0.0, memory.slack);
  return memory;
}

double predict_bytes(const Workload& workload, const ParameterSet& parameters, const MemoryReading& reading) {
  if (workload.family->own_trainer || reading.stage == MemoryStage::heaviest)
    return estimate_memory(workload, parameters).bytes(reading.figure);
  const int64_t stage = reading.stage == MemoryStage::first ? 0 : workload.layout.pipeline - 1;
  return estimate_stage_memory(workload, parameters, stage).bytes(reading.figure);
}

}  // namespace tprimat::planner
