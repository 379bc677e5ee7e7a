#include "planner/step_time.h"

#include <algorithm>
#include <cmath>

#include "planner/memory.h"
#include "planner/schedule.h"

namespace tprimat::planner {
namespace {

double doublings(double ratio) { return ratio > 1 ? std::log2(ratio) : 0; }

// One micro-batch on the rank of a pipeline that works longest.
struct StageTime {
  LayerTime layer;
  double layers = 0;
  double ends = 0;  // embedding, head and loss, where the rank has them
  double total() const { return layers * (layer.total().both() + layer.repeated) + ends; }
};

double ends_of_stage(const EndsTime& ends, const Layout& layout, int64_t stage) {
  return (stage == 0 ? ends.embedding.both() : 0) + (stage == layout.pipeline - 1 ? ends.head.both() : 0);
}

StageTime time_stage(const Workload& workload, const LayerTime& layer, const EndsTime& ends, int64_t stage) {
  return {layer, static_cast<double>(workload.stage_layers(stage)), ends_of_stage(ends, workload.layout, stage)};
}

StageTime time_busiest_stage(const Workload& workload, const LayerTime& layer, const EndsTime& ends) {
  StageTime busiest;
  workload.visit_stages([&](int64_t stage) {
    const StageTime each = time_stage(workload, layer, ends, stage);
    if (each.total() >= busiest.total()) busiest = each;
  });
  return busiest;
}

void add_stage(StepTime& step, const StageTime& stage, double micro_batches) {
  const double layers = stage.layers * micro_batches;
  step.products = layers * stage.layer.products.both();
  step.attention = layers * stage.layer.attention.both();
  step.elementwise = layers * stage.layer.elementwise.both();
  step.tensor = layers * stage.layer.tensor.both();
  step.context = layers * stage.layer.context.both();
  step.recompute = layers * stage.layer.repeated;
  step.ends = micro_batches * stage.ends;
}

// Gradients of weights are half of the backward pass's products.
ChunkSeconds time_chunk(const Workload& workload, const LayerTime& layer, const EndsTime& ends, int64_t place) {
  const auto layers = static_cast<double>(workload.chunk_layers(place));
  const Phases total = layer.total();
  ChunkSeconds chunk;
  chunk.forward = layers * total.forward;
  chunk.weights = layers * layer.products.backward / 2;
  chunk.backward = layers * (total.backward + layer.repeated) - chunk.weights;
  const auto add = [&](const Phases& end) { chunk.forward += end.forward, chunk.backward += end.backward; };
  if (place == 0) add(ends.embedding);
  if (place == workload.layout.pipeline * workload.layout.chunks - 1) add(ends.head);
  return chunk;
}

double time_bubble(const Workload& workload, const LayerTime& layer, const EndsTime& ends) {
  const Layout& layout = workload.layout;
  std::vector<ChunkSeconds> places;
  for (int64_t place = 0; place < layout.pipeline * layout.chunks; ++place)
    places.push_back(time_chunk(workload, layer, ends, place));
  const Pipeline pipeline{layout.pipeline, layout.chunks, workload.micro_batches(), layout.delays_weights};
  return simulate_pipeline(pipeline, places) - pipeline.micro_batches * busiest_rank_seconds(pipeline, places);
}

// The last rank begins when the first micro-batch has passed all others, and they end after it.
double least_bubble(const Workload& workload, const LayerTime& layer, const EndsTime& ends, double busiest) {
  const Layout& layout = workload.layout;
  const auto passed = [&](int64_t place) {
    const ChunkSeconds chunk = time_chunk(workload, layer, ends, place);
    return layout.delays_weights ? chunk.forward : chunk.total();
  };
  double others = passed(0);
  if (workload.stages_are_alike() && layout.pipeline > 2)
    others += static_cast<double>(layout.pipeline - 2) * passed(1);
  else
    for (int64_t place = 1; place < layout.pipeline - 1; ++place) others += passed(place);
  const double idle = busiest - time_stage(workload, layer, ends, layout.pipeline - 1).total();
  return std::max(0.0, others - std::max(1.0, workload.micro_batches()) * idle);
}

// Between neighbours once each way for every micro-batch and chunk, of which a share is felt, and whole while the
// pipeline fills and drains.
double time_transfers(const Workload& workload, const Machine& machine, const Rates& rates) {
  const Layout& layout = workload.layout;
  const double split = workload.family->scattered_transfers ? static_cast<double>(layout.tensor) : 1;
  const double tokens =
      static_cast<double>(layout.micro_batch * workload.sequence_length) / static_cast<double>(layout.context);
  const bool near = layout.num_gpus() <= machine.gpus_per_domain;
  const double transfer = k_half_bytes * tokens * static_cast<double>(workload.shape.hidden_size) / split /
                          (near ? rates.link : rates.network);
  const double steady = 2 * workload.micro_batches() * static_cast<double>(layout.chunks) * transfer;
  return rates.transfer_share * steady + 2 * static_cast<double>(layout.pipeline - 1) * transfer;
}

struct DataGroup {
  double ranks = 1;
  double bandwidth = 1;  // bytes/s that one rank sees
};

// A ring over nodes enters and leaves each by the networks of all the ranks that it has there.
DataGroup data_group(const Layout& layout, const Machine& machine, const Rates& rates) {
  DataGroup group;
  group.ranks = static_cast<double>(layout.data * layout.context);
  group.bandwidth = rates.link;
  const auto domain = static_cast<double>(machine.gpus_per_domain), tensor = static_cast<double>(layout.tensor);
  if (group.ranks * tensor <= domain) return group;
  const double together = std::clamp(domain / tensor, 1.0, group.ranks);
  group.bandwidth = std::min(rates.link, together * rates.network);
  return group;
}

// Each micro-batch gathers the weights for both passes and scatters its gradients (arXiv 1910.02054, section 7); what
// does not fit behind the computing is felt.
double time_sharded_data(const Workload& workload, const StageTime& stage, const Rates& rates, const DataGroup& group,
                         double weights) {
  const double latency = stage.layers * rates.gather_latency * std::log2(std::max(2.0, group.ranks));
  const double gradient = workload.family->fp32_gradients ? 4 : 2;
  const double bytes = weights * (group.ranks - 1) / group.ranks * (2 * gathered_bytes(workload) + gradient);
  const double exchanged = bytes / group.bandwidth + 3 * latency;  // gathered twice, scattered once
  const double window = stage.total();
  const double felt =
      std::max(0.0, exchanged - rates.data_overlap * window) + rates.data_leak * std::min(exchanged, window);
  return workload.micro_batches() * felt;
}

// Where each weight tensor is scattered and gathered by itself, its ring's steps are felt.
double time_tensor_exchanges(const Workload& workload, const Rates& rates, const DataGroup& group) {
  if (!workload.family->exchanges_tensors || workload.layout.sharding == Sharding::none) return 0;
  return (group.ranks - 1) * rates.exchange_latency;
}

// Gradients are summed on all ranks, or scattered and the updated weights gathered (ZeRO-1).
double time_replicated_data(const Workload& workload, const StageTime& stage, const Rates& rates,
                            const DataGroup& group, double weights) {
  const double gradient = workload.family->fp32_gradients ? 4 : 2;
  const double back = workload.layout.sharding == Sharding::none ? gradient : k_half_bytes;
  const double exchanged = weights * (group.ranks - 1) / group.ranks * (gradient + back) / group.bandwidth;
  const double window = rates.data_overlap * stage.total();
  return std::max(0.0, exchanged - window) + rates.data_leak * std::min(exchanged, window) +
         time_tensor_exchanges(workload, rates, group);
}

double time_data(const Workload& workload, const Machine& machine, const Rates& rates, const StageTime& stage) {
  const DataGroup group = data_group(workload.layout, machine, rates);
  if (group.ranks <= 1) return 0;
  const double weights = heaviest_rank_weights(workload);
  if (workload.layout.sharding == Sharding::weights) return time_sharded_data(workload, stage, rates, group, weights);
  return time_replicated_data(workload, stage, rates, group, weights);
}

// Adam reads and writes two moments and the 4-byte weight, and writes the 2-byte one.
double time_optimizer(const Workload& workload, const Rates& rates) {
  constexpr double k_bytes_per_weight = 30;
  const Layout& layout = workload.layout;
  const double shards = layout.sharding == Sharding::none ? 1 : static_cast<double>(layout.data * layout.context);
  return heaviest_rank_weights(workload) / shards * k_bytes_per_weight / rates.memory;
}

}  // namespace

double StepTime::total() const {
  return products + attention + elementwise + ends + recompute + tensor + context + transfers + data + bubble +
         optimizer + overhead;
}

void StepTime::scale(double factor) {
  for (double* part : {&products, &attention, &elementwise, &ends, &recompute, &tensor, &context, &transfers, &data,
                       &bubble, &optimizer, &overhead})
    *part *= factor;
}

double StepTime::tokens_per_second_per_gpu(const Workload& workload) const {
  return static_cast<double>(workload.global_batch) * static_cast<double>(workload.sequence_length) / total() /
         static_cast<double>(workload.layout.num_gpus());
}

StepClock::StepClock(const Machine& machine, const Rates& rates) : machine_(machine), rates_(rates) {}

// Only what the time of a layer depends on and a search changes is part of the key.
const StepClock::Parts& StepClock::parts_of(const Workload& workload) {
  const Layout& layout = workload.layout;
  const std::array<int64_t, 5> key{layout.tensor, layout.context, layout.micro_batch,
                                   static_cast<int64_t>(layout.recompute), layout.sequence_parallel ? 1 : 0};
  if (last_ && key == last_key_) return *last_;
  const auto [place, is_new] = parts_.try_emplace(key);
  if (is_new) place->second = {time_layer(workload, machine_, rates_), time_ends(workload, rates_)};
  last_key_ = key, last_ = &place->second;
  return *last_;
}

StepTime StepClock::time(const Workload& workload, bool simulate) {
  if (workload.family->own_trainer) return time_native_step(workload, machine_, rates_.native);
  const Parts& parts = parts_of(workload);
  const LayerTime& layer = parts.layer;
  const EndsTime& ends = parts.ends;
  const StageTime stage = time_busiest_stage(workload, layer, ends);
  StepTime step;
  add_stage(step, stage, workload.micro_batches());
  if (workload.layout.pipeline > 1) {
    step.bubble = simulate ? time_bubble(workload, layer, ends) : least_bubble(workload, layer, ends, stage.total());
    step.transfers = time_transfers(workload, machine_, rates_);
  }
  step.data = time_data(workload, machine_, rates_, stage);
  step.optimizer = time_optimizer(workload, rates_);
  const auto gpus = static_cast<double>(workload.layout.num_gpus());
  step.overhead =
      rates_.step_start + rates_.node_start * doublings(gpus / static_cast<double>(machine_.gpus_per_domain));
  step.scale((1 + rates_.straggling * doublings(gpus / k_gpus_per_node)) * rates_.scale);
  return step;
}

StepTime StepClock::time(const Workload& workload) { return time(workload, true); }
StepTime StepClock::least(const Workload& workload) { return time(workload, false); }

StepTime time_step(const Workload& workload, const Machine& machine, const Rates& rates) {
  return StepClock(machine, rates).time(workload);
}

}  // namespace tprimat::planner
