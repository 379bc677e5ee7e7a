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

// Elements of one micro-batch per unit of width.
double rows_of(const Workload& workload) {
  return static_cast<double>(workload.layout.micro_batch * workload.sequence_length) /
         static_cast<double>(workload.layout.context);
}

// Bytes per row that tensor parallelism splits only together with the sequence: two norms' inputs, the inputs of the
// first products of attention and MLP, and two masks.
double whole_width_bytes(const Workload& workload) {
  const auto hidden = static_cast<double>(workload.shape.hidden_size);
  return hidden * (2 * k_half_bytes + 2 * k_half_bytes + (workload.family->dropout ? 2 : 0));
}

// Queries, keys, values, the sum of values; the MLP's products. Split by tensor parallelism.
double split_width_bytes(const Workload& workload) {
  const ModelSpec& m = workload.shape;
  const auto queries = static_cast<double>(m.num_attention_heads * m.head_dim);
  const auto keys = static_cast<double>(m.num_key_value_heads * m.head_dim);
  const double products = m.mlp == MlpKind::swiglu ? 3 : 2;
  constexpr double k_softmax_sum = 4;  // fused attention keeps one fp32 figure per row and head
  const double fused =
      workload.family->fused_attention ? k_softmax_sum * static_cast<double>(m.num_attention_heads) : 0;
  return k_half_bytes * (2 * queries + 2 * keys + products * static_cast<double>(m.ffn_hidden_size)) + fused;
}

// Softmax, its mask and what the mask leaves: 5 bytes per score. Not kept by fused attention, nor with selective
// recomputation.
double score_bytes(const Workload& workload) {
  if (workload.family->fused_attention || workload.layout.recompute == Recompute::selective) return 0;
  const double each = workload.family->dropout ? 5 : 2;
  return each * static_cast<double>(workload.shape.num_attention_heads * workload.sequence_length);
}

// What torchtitan keeps per row when every second product is repeated: inputs of the norms, queries, values, the sum of
// values and the MLP's first product; in FP8 the results of products are not kept.
double operator_kept_bytes(const Workload& workload) {
  const ModelSpec& m = workload.shape;
  const auto hidden = static_cast<double>(m.hidden_size);
  if (workload.precision == PlanPrecision::fp8) return 4 * hidden;
  return k_half_bytes * (4 * hidden + static_cast<double>(m.num_key_value_heads * m.head_dim + m.ffn_hidden_size));
}

double kept_bytes(const Workload& workload) {
  const Layout& layout = workload.layout;
  const auto tensor = static_cast<double>(layout.tensor);
  const double sequence_split = layout.sequence_parallel ? tensor : 1;
  const double hidden_input = k_half_bytes * static_cast<double>(workload.shape.hidden_size);
  if (layout.recompute == Recompute::full) return hidden_input / sequence_split;
  if (workload.selects_operators()) return operator_kept_bytes(workload) / sequence_split;
  return whole_width_bytes(workload) / sequence_split + (split_width_bytes(workload) + score_bytes(workload)) / tensor;
}

// Layers times micro-batches whose activations a stage keeps: under 1F1B as many micro-batches as stages follow, itself
// included; its interleaved form begins 2 (p - s - 1) + (v - 1) p + 1 chunks before the first one ends, which is
// L (1 + (p - 1) / (p v)) layers on the first stage (arXiv 2205.05198, section 4.2.3).
double layers_in_flight(const Workload& workload, int64_t stage) {
  const Layout& layout = workload.layout;
  const int64_t behind = layout.delays_weights ? layout.pipeline - 1 : layout.pipeline - stage - 1;
  const int64_t begun = layout.chunks == 1 ? behind + 1 : 2 * behind + (layout.chunks - 1) * layout.pipeline + 1;
  const auto chunks = static_cast<double>(layout.chunks);
  const double all = workload.micro_batches() * chunks;
  return std::min(static_cast<double>(begun), all) / chunks * static_cast<double>(workload.stage_layers(stage));
}

double data_ranks(const Workload& workload) {
  return static_cast<double>(workload.layout.data * workload.layout.context);
}

double gradient_bytes(const Workload& workload) { return workload.family->fp32_gradients ? 4 : k_half_bytes; }

// DeepSpeed's ZeRO-1: 16-bit gradients on every rank; fp16 makes an fp32 copy of the rank's share, bf16 sums all in
// fp32.
double deepspeed_gradients(const Workload& workload, double weights) {
  const double summed = workload.precision == PlanPrecision::fp16 ? 4 / data_ranks(workload) : 4;
  return (k_half_bytes + summed) * weights;
}

// PyTorch's FSDP: fp32 shards, from which each layer is gathered in 16 bits; a pipeline keeps the gathered weights and
// the unsharded gradients over its micro-batches.
void add_fp32_shards(MemoryEstimate& memory, const Workload& workload, double weights) {
  memory.weights = 0;
  if (workload.layout.pipeline == 1) return;
  memory.gathered = k_half_bytes * weights;
  memory.gradients += 4 * weights;
}

void add_states(MemoryEstimate& memory, const Workload& workload, double weights) {
  const double ranks = data_ranks(workload);
  const Sharding sharding = workload.layout.sharding;
  const auto share = [&](Sharding from) { return sharding >= from ? weights / ranks : weights; };
  memory.weights = k_half_bytes * share(Sharding::weights);
  memory.gradients = gradient_bytes(workload) * share(Sharding::gradients);
  memory.master_weights = workload.keeps_masters ? 4 * share(Sharding::optimizer) : 0;
  memory.moments = 2 * workload.moment_bytes * share(Sharding::optimizer);
  if (workload.family->deepspeed_states) memory.gradients = deepspeed_gradients(workload, weights);
  if (sharding == Sharding::weights)
    memory.gathered = 2 * k_half_bytes * layer_weights(workload.shape) / static_cast<double>(workload.layout.tensor);
  if (workload.family->fp32_shards) add_fp32_shards(memory, workload, weights);
  if (workload.offload != Offload::none) memory.master_weights = memory.moments = memory.gradients = 0;
  if (workload.offload == Offload::parameters) memory.weights = 0;
}

// 16 bits, fp32 and gradient; torchtitan's loss also makes the logarithm of the softmax.
double bytes_per_score(const Family& family) {
  if (family.fused_loss) return 2 + 2;
  return family.operator_recompute ? 2 + 4 + 4 + 4 : 2 + 4 + 4;
}

double logit_bytes(const Workload& workload) {
  return rows_of(workload) * static_cast<double>(workload.shape.vocab_size) /
         static_cast<double>(workload.layout.tensor) * bytes_per_score(*workload.family);
}

}  // namespace

double layer_weights(const ModelSpec& m) {
  const auto hidden = static_cast<double>(m.hidden_size), inner = static_cast<double>(m.ffn_hidden_size);
  const auto queries = static_cast<double>(m.num_attention_heads * m.head_dim);
  const auto keys = static_cast<double>(m.num_key_value_heads * m.head_dim);
  const double matrices = m.mlp == MlpKind::swiglu ? 3 : 2;
  return hidden * (2 * queries + 2 * keys) + matrices * hidden * inner + 2 * hidden;
}

double stage_weights(const Workload& workload, int64_t stage) {
  const ModelSpec& m = workload.shape;
  const bool first = stage == 0, last = stage == workload.layout.pipeline - 1;
  double tables = (first ? 1 : 0) + (last ? 1 : 0);
  if (first && last && m.tied_embeddings) tables = 1;
  const double ends = tables * static_cast<double>(m.vocab_size) * static_cast<double>(m.hidden_size);
  const double layers = static_cast<double>(workload.stage_layers(stage)) * layer_weights(m);
  return (layers + ends) / static_cast<double>(workload.layout.tensor);
}

double heaviest_rank_weights(const Workload& workload) {
  double most = 0;
  workload.visit_stages([&](int64_t stage) { most = std::max(most, stage_weights(workload, stage)); });
  return most;
}

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

double MemoryEstimate::total() const {
  return weights + gradients + master_weights + moments + activations + logits + gathered + buffers + slack;
}

std::vector<std::pair<std::string, double>> MemoryEstimate::parts() const {
  return {{"weights", weights}, {"gradients", gradients},       {"master weights", master_weights},
          {"moments", moments}, {"activations", activations},   {"logits", logits},
          {"buffers", buffers}, {"gathered weights", gathered}, {"slack", slack}};
}

double layer_activation_bytes(const Workload& workload) { return rows_of(workload) * kept_bytes(workload); }

namespace {

// A layer that is computed again is whole for a while.
double repeated_layer_bytes(const Workload& workload) {
  if (workload.layout.recompute != Recompute::full && !workload.selects_operators()) return 0;
  Workload whole = workload;
  whole.layout.recompute = Recompute::none;
  return layer_activation_bytes(whole);
}

void add_framework(MemoryEstimate& memory, const Workload& workload, const ParameterSet& parameters) {
  memory.buffers = parameters.scoped("fixed_memory", workload.family->id, 0);
  memory.slack = parameters.scoped("allocator_slack", workload.family->id, 0) * memory.total();
}

MemoryEstimate estimate_stage_memory(const Workload& workload, const ParameterSet& parameters, int64_t stage) {
  MemoryEstimate memory;
  add_states(memory, workload, stage_weights(workload, stage));
  memory.activations =
      layers_in_flight(workload, stage) * layer_activation_bytes(workload) + repeated_layer_bytes(workload);
  if (stage == workload.layout.pipeline - 1) memory.logits = logit_bytes(workload);
  add_framework(memory, workload, parameters);
  return memory;
}

}  // namespace

MemoryEstimate estimate_memory(const Workload& workload, const ParameterSet& parameters) {
  if (workload.family->own_trainer) return plan_native_memory(workload);
  MemoryEstimate most;
  workload.visit_stages([&](int64_t stage) {
    const MemoryEstimate each = estimate_stage_memory(workload, parameters, stage);
    if (each.total() > most.total()) most = each;
  });
  return most;
}

}  // namespace tprimat::planner
