#include "memory/training_plan.h"

#include <algorithm>
#include <new>

#include "spec/pipeline_schedule.h"

namespace tprimat {
namespace {

ValueBytes value_bytes(Precision precision, bool in_double) {
  if (in_double) return {sizeof(double), sizeof(double)};
  const bool wide = precision == Precision::fp32 || precision == Precision::tf32;
  return {wide ? sizeof(float) : sizeof(uint16_t), sizeof(float)};
}

// An unchecked specification may state any numbers: no product of a plan may overflow.
void refuse_uncountable(const TrainSpec& spec) {
  const ModelSpec& m = spec.model;
  const auto number = [](int64_t count) { return static_cast<double>(count); };
  const double length = number(spec.sequence_length), hidden = number(m.hidden_size);
  const double heads = (number(m.num_attention_heads) + 2 * number(m.num_key_value_heads)) * number(m.head_dim);
  const double widest =
      std::max({heads, 2 * number(m.ffn_hidden_size), hidden, number(m.vocab_size), number(m.max_position_embeddings)});
  const double tokens = number(std::max(spec.micro_batch_size, spec.global_batch_size)) * length;
  constexpr auto k_max = static_cast<double>(k_any_machine);
  if (std::max(number(spec.micro_batch_size) * length, hidden) * widest > k_max || tokens > k_max)
    throw std::bad_alloc();
}

// Micro batches of each chunk under way at most. The schedule repeats itself after PP of them.
std::vector<int64_t> most_under_way(const TrainSpec& spec, int stage) {
  const ParallelSpec& layout = spec.parallel;
  const int64_t micro_batches = std::max<int64_t>(1, spec.gradient_accumulation_steps());
  const int64_t rounds = std::clamp<int64_t>((micro_batches + layout.pipeline - 1) / layout.pipeline, 1, 4);
  const int64_t scheduled =
      layout.virtual_pipeline == 1 ? std::min(micro_batches, layout.pipeline) : rounds * layout.pipeline;
  return micro_batches_under_way(pipeline_schedule(layout, stage, scheduled), layout.virtual_pipeline);
}

PlannedChunk plan_layers(const TrainSpec& spec, TrainingPlan& plan, const ChunkShape& shape) {
  ArenaPlan kept(plan.arena.values(), Place::bank);
  PlannedChunk chunk;
  chunk.shape = shape;
  chunk.buffers = plan_chunk({spec.model, plan.shape, plan.weights, plan.arena, kept}, shape);
  chunk.bank_bytes = kept.total_bytes();
  return chunk;
}

void plan_stage(const TrainSpec& spec, int stage, TrainingPlan& plan) {
  ArenaPlan none;
  const LayerPlan layers{spec.model, plan.shape, plan.weights, plan.arena, none};
  plan.shared = plan_shared(layers);
  const std::vector<int64_t> banks = most_under_way(spec, stage);
  const size_t mark = plan.arena.mark();
  for (size_t chunk = 0; chunk < banks.size(); ++chunk) {
    plan.arena.rewind(mark);  // one chunk works at a time
    plan.chunks.push_back(
        plan_layers(spec, plan, chunk_shape(spec.model, spec.parallel, stage, static_cast<int>(chunk))));
    plan.chunks.back().banks = banks[chunk];
  }
  plan.arena.seek_end();
  for (PlannedChunk& chunk : plan.chunks) {
    if (chunk.bank_bytes > k_any_machine / static_cast<size_t>(chunk.banks)) throw std::bad_alloc();
    chunk.memory =
        plan.arena.reserve<std::byte>(Component::activations, static_cast<int64_t>(chunk.bank_bytes) * chunk.banks);
  }
  for (Slot<Element>& gradient : plan.stream_gradients)
    gradient = plan.arena.reserve<Element>(Component::workspace, layers.stream_elements());
  plan.loss = plan.arena.reserve<double>(Component::batch, 1);
}

void plan_store(const TrainSpec& spec, TrainingPlan& plan) {
  ArenaPlan& arena = plan.arena;
  WeightBuffers& store = plan.store;
  store.zero_stage = spec.parallel.zero_stage;
  store.data_size = static_cast<int>(spec.parallel.data * spec.parallel.context);
  const int64_t all = plan.weights.size(), largest = plan.weights.largest_unit();
  store.owned = store.zero_stage == 0 ? all : all / store.data_size;
  store.weights = arena.reserve<Element>(Component::weights, store.splits_weights() ? store.owned : all);
  store.gradients = arena.reserve<Sum>(Component::gradients, store.splits_gradients() ? store.owned : all);
  if (store.splits_weights())
    store.gathered = arena.reserve<Element>(Component::gathered_weights, WeightBuffers::k_gathered_units * largest);
  if (!store.splits_gradients()) return;
  constexpr int64_t k_units = WeightBuffers::k_reduced_units;
  store.reduced = arena.reserve<Sum>(Component::reduced_gradients, k_units * largest);
  store.reduced_shares = arena.reserve<Sum>(Component::reduced_gradients, k_units * (largest / store.data_size));
}

void plan_optimizer(const OptimizerSpec& spec, TrainingPlan& plan) {
  ArenaPlan& arena = plan.arena;
  OptimizerBuffers& optimizer = plan.optimizer;
  const int64_t owned = plan.store.owned;
  const bool is_short = arena.values().element < arena.values().sum;
  if (is_short && spec.master_weights) optimizer.master = arena.reserve<Sum>(Component::master_weights, owned);
  if (spec.moments == MomentFormat::bf16) {
    optimizer.short_first_moment = arena.reserve<ShortElement>(Component::moments, owned);
    optimizer.short_second_moment = arena.reserve<ShortElement>(Component::moments, owned);
  } else {
    optimizer.first_moment = arena.reserve<Sum>(Component::moments, owned);
    optimizer.second_moment = arena.reserve<Sum>(Component::moments, owned);
  }
}

BatchBuffers plan_batch(const TrainSpec& spec, TrainingPlan& plan) {
  const int64_t read = std::max<int64_t>(1, spec.gradient_accumulation_steps()) * plan.shape.tokens();
  return {plan.arena.reserve<int32_t>(Component::batch, read), plan.arena.reserve<int32_t>(Component::batch, read)};
}

}  // namespace

TrainingPlan plan_training(const TrainSpec& spec, const RankPlace& place, const TrainingDevice& device) {
  refuse_uncountable(spec);
  TrainingPlan plan;
  plan.shape = rank_shape(spec, place, device);
  plan.weights = WeightPlan(spec.parallel.data * spec.parallel.context);
  plan.arena = ArenaPlan(value_bytes(spec.precision, device.in_double));
  plan_stage(spec, place.pipeline, plan);
  plan_store(spec, plan);
  plan_optimizer(spec.optimizer, plan);
  plan.batch = plan_batch(spec, plan);
  return plan;
}

}  // namespace tprimat
