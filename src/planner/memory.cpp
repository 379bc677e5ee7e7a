#include "planner/memory.h"

#include <algorithm>
#include <cmath>

#include "planner/weights.h"

namespace tprimat {
namespace {

// Elements of one micro-batch per unit of width.
double rows_of(const Workload& workload) {
  return static_cast<double>(workload.layout.micro_batch * workload.sequence_length) /
         static_cast<double>(workload.layout.context);
}

// Bytes per row that tensor parallelism splits only together with the sequence: two norms' inputs, the inputs of the
// first products of attention and MLP, and two masks.
double whole_width_bytes(const Workload& workload) {
  const auto hidden = static_cast<double>(workload.shape.model.hidden_size);
  return hidden * (2 * k_half_bytes + 2 * k_half_bytes + (workload.family->dropout ? 2 : 0));
}

// Queries, keys, values, the sum of values; the MLP's products. Split by tensor parallelism.
double split_width_bytes(const Workload& workload) {
  const ModelSpec& m = workload.shape.model;
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
  return each * static_cast<double>(workload.shape.model.num_attention_heads * workload.sequence_length);
}

double kept_bytes(const Workload& workload) {
  const Layout& layout = workload.layout;
  const auto tensor = static_cast<double>(layout.tensor);
  const double hidden_input = k_half_bytes * static_cast<double>(workload.shape.model.hidden_size);
  if (layout.recompute == Recompute::full) return hidden_input;
  const double whole = whole_width_bytes(workload) / (layout.sequence_parallel ? tensor : 1);
  const double split = (split_width_bytes(workload) + score_bytes(workload)) / tensor;
  if (!workload.family->operator_recompute || layout.recompute == Recompute::none) return whole + split;
  return (whole + split) / 2;  // every second product is kept
}

// Micro-batches whose activations the first stage keeps: 1F1B fills the pipeline once, its interleaved form keeps
// (p - 1) / (p v) more (arXiv 2205.05198, section 4.2.3).
double layers_in_flight(const Workload& workload) {
  const Layout& layout = workload.layout;
  const auto layers = static_cast<double>(workload.shape.model.num_layers);
  const auto stages = static_cast<double>(layout.pipeline), chunks = static_cast<double>(layout.chunks);
  const double started = std::min(stages, std::max(1.0, workload.micro_batches()));
  const double more = chunks > 1 ? 1 + (stages - 1) / (stages * chunks) : 1;
  return layers / stages * started * more;
}

double data_ranks(const Workload& workload) {
  return static_cast<double>(workload.layout.data * workload.layout.context);
}

void add_states(MemoryEstimate& memory, const Workload& workload) {
  const double weights = heaviest_rank_weights(workload), ranks = data_ranks(workload);
  const Sharding sharding = workload.layout.sharding;
  const auto share = [&](Sharding from) { return sharding >= from ? weights / ranks : weights; };
  const double gradient = workload.family->fp32_gradients ? 4 : k_half_bytes;
  memory.weights = k_half_bytes * share(Sharding::weights);
  memory.gradients = gradient * share(Sharding::gradients);
  memory.master_weights = 4 * share(Sharding::optimizer);
  memory.moments = 8 * share(Sharding::optimizer);
  if (sharding == Sharding::weights)
    memory.gathered =
        2 * k_half_bytes * layer_weights(workload.shape.model) / static_cast<double>(workload.layout.tensor);
}

double logit_bytes(const Workload& workload) {
  constexpr double k_per_score = 2 + 4 + 4;  // half precision, fp32, gradient
  return rows_of(workload) * static_cast<double>(workload.shape.model.vocab_size) /
         static_cast<double>(workload.layout.tensor) * k_per_score;
}

}  // namespace

double MemoryEstimate::total() const {
  return weights + gradients + master_weights + moments + activations + logits + gathered + buffers + slack;
}

double layer_activation_bytes(const Workload& workload) { return rows_of(workload) * kept_bytes(workload); }

MemoryEstimate estimate_memory(const Workload& workload, const ParameterSet& parameters) {
  MemoryEstimate memory;
  add_states(memory, workload);
  memory.activations = layers_in_flight(workload) * layer_activation_bytes(workload);
  if (workload.layout.recompute == Recompute::full) {  // one layer at a time is whole again
    Workload whole = workload;
    whole.layout.recompute = Recompute::none;
    memory.activations += layer_activation_bytes(whole);
  }
  if (workload.layout.pipeline == 1) memory.logits = logit_bytes(workload);
  const std::string& family = workload.family->id;
  memory.buffers = parameters.scoped("fixed_memory", family, 0);
  memory.slack = parameters.scoped("allocator_slack", family, 0) * memory.total();
  return memory;
}

}  // namespace tprimat
