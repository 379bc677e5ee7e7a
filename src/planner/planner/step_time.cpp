#include "planner/step_time.h"

#include <algorithm>
#include <cmath>

#include "planner/layer_memory.h"
#include "planner/schedule.h"

namespace tprimat::planner {
namespace {

double doublings(double ratio) { return ratio > 1 ? std::log2(ratio) : 0; }

// One micro-batch on a rank of a pipeline.
struct StageTime {
  const PartTimes* parts = nullptr;
  StageLayers layers;
  double ends = 0;  // embedding, head and loss, where the rank has them
  double total() const {
    const auto whole = [](const LayerTime& layer) { return layer.total().both() + layer.repeated; };
    double sum = static_cast<double>(layers.dense) * whole(parts->dense) + ends;
    if (const int64_t more = layers.experts + layers.prediction; more > 0)
      sum += static_cast<double>(more) * whole(parts->sparse());
    return sum;
  }
};

double ends_of_stage(const Workload& workload, const EndsTime& ends, int64_t stage) {
  if (stage != workload.layout.pipeline - 1) return stage == 0 ? ends.embedding.both() : 0;
  const auto further = static_cast<double>(workload.shape.prediction_layers.value_or(0));
  return (stage == 0 ? ends.embedding.both() : 0) + ends.head.both() + further * ends.prediction.both();
}

StageTime time_stage(const Workload& workload, const PartTimes& parts, int64_t stage) {
  return {&parts, layers_of_stage(workload, stage), ends_of_stage(workload, parts.ends, stage)};
}

StageTime time_busiest_stage(const Workload& workload, const PartTimes& parts) {
  StageTime busiest;
  workload.visit_stages([&](int64_t stage) {
    const StageTime each = time_stage(workload, parts, stage);
    if (busiest.parts == nullptr || each.total() >= busiest.total()) busiest = each;
  });
  return busiest;
}

void add_layers(StepTime& step, const LayerTime& layer, double layers) {
  step.products += layers * layer.products.both();
  step.attention += layers * layer.attention.both();
  step.elementwise += layers * layer.elementwise.both();
  step.tensor += layers * layer.tensor.both();
  step.context += layers * layer.context.both();
  step.experts += layers * layer.experts.both();
  step.recompute += layers * layer.repeated;
}

void add_stage(StepTime& step, const StageTime& stage, double micro_batches) {
  add_layers(step, stage.parts->dense, static_cast<double>(stage.layers.dense) * micro_batches);
  add_layers(step, stage.parts->sparse(),
             static_cast<double>(stage.layers.experts + stage.layers.prediction) * micro_batches);
  step.ends = micro_batches * stage.ends;
}

void add_layers(ChunkSeconds& chunk, const LayerTime& layer, double layers, bool frozen) {
  const Phases total = layer.total();
  const double weights = frozen ? 0 : layers * layer.products.backward / 2;
  chunk.forward += layers * total.forward;
  chunk.weights += weights;
  chunk.backward += layers * (total.backward + layer.repeated) - weights;
}

// Gradients of weights are half of the backward pass's products. `first`: the chunk's first layer.
ChunkSeconds time_chunk(const Workload& workload, const PartTimes& parts, int64_t place, int64_t first) {
  const int64_t all = workload.chunk_layers(place);
  const int64_t sparse = workload.expert_layers_before(first + all) - workload.expert_layers_before(first);
  const bool last = place == workload.layout.pipeline * workload.layout.chunks - 1;
  const int64_t all_further = workload.shape.prediction_layers.value_or(0);
  const int64_t further = place == workload.prediction_place() ? all_further : 0;
  ChunkSeconds chunk;
  add_layers(chunk, parts.dense, static_cast<double>(all - sparse), workload.trains_adapters);
  add_layers(chunk, parts.sparse(), static_cast<double>(sparse + further), workload.trains_adapters);
  const auto add = [&](const Phases& end) { chunk.forward += end.forward, chunk.backward += end.backward; };
  if (place == 0) add(parts.ends.embedding);
  if (last) add(parts.ends.head + parts.ends.prediction * static_cast<double>(all_further));
  return chunk;
}

std::vector<ChunkSeconds> time_chunks(const Workload& workload, const PartTimes& parts) {
  std::vector<ChunkSeconds> places;
  int64_t first = 0;
  for (int64_t place = 0; place < workload.layout.pipeline * workload.layout.chunks; ++place) {
    places.push_back(time_chunk(workload, parts, place, first));
    first += workload.chunk_layers(place);
  }
  return places;
}

double time_bubble(const Workload& workload, const PartTimes& parts) {
  const Layout& layout = workload.layout;
  const std::vector<ChunkSeconds> places = time_chunks(workload, parts);
  const Pipeline pipeline{layout.pipeline, layout.chunks, workload.micro_batches(), layout.delays_weights};
  return simulate_pipeline(pipeline, places) - pipeline.micro_batches * busiest_rank_seconds(pipeline, places);
}

// The last rank begins when the first micro-batch has passed all others, and they end after it.
double least_bubble(const Workload& workload, const PartTimes& parts, double busiest) {
  const Layout& layout = workload.layout;
  const auto seconds = [&](const ChunkSeconds& chunk) { return layout.delays_weights ? chunk.forward : chunk.total(); };
  double others = 0;
  if (workload.stages_are_alike() && layout.pipeline > 2) {
    others =
        seconds(time_chunk(workload, parts, 0, 0)) +
        static_cast<double>(layout.pipeline - 2) * seconds(time_chunk(workload, parts, 1, workload.chunk_layers(0)));
  } else {
    int64_t first = 0;
    for (int64_t place = 0; place < layout.pipeline - 1; ++place) {
      others += seconds(time_chunk(workload, parts, place, first));
      first += workload.chunk_layers(place);
    }
  }
  const double idle = busiest - time_stage(workload, parts, layout.pipeline - 1).total();
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

// Ranks that hold the same weights, of which each `apart`-th rank is one. A ring over nodes enters and leaves each by
// the networks of all the ranks that it has there.
DataGroup data_group(double ranks, double apart, const Machine& machine, const Rates& rates) {
  const auto domain = static_cast<double>(machine.gpus_per_domain);
  const double together = std::clamp(domain / apart, 1.0, ranks);
  DataGroup group{ranks, rates.link_among(machine, static_cast<int64_t>(together))};
  if (ranks * apart > domain) group.bandwidth = std::min(group.bandwidth, together * rates.network);
  return group;
}

// What data-parallel ranks have alike: most weights on DP x CP ranks, routed experts on fewer.
struct SharedWeights {
  DataGroup common, experts;
  RankWeights weights;  // of the heaviest stage
  bool is_alone() const { return common.ranks <= 1 && (weights.experts == 0 || experts.ranks <= 1); }
  // Seconds of exchanging so many bytes for each weight around its ring.
  double seconds(double bytes_per_weight) const {
    const auto ring = [](const DataGroup& group, double number) {
      return number * (group.ranks - 1) / group.ranks / group.bandwidth;
    };
    return bytes_per_weight * (ring(common, weights.common) + ring(experts, weights.experts));
  }
};

RankWeights heaviest_weights(const Workload& workload) {
  RankWeights most;
  workload.visit_stages([&](int64_t stage) {
    const RankWeights each = stage_weights(workload, stage);
    if (each.total() > most.total()) most = each;
  });
  return most;
}

double expert_data_ranks(const Layout& l) {
  return std::max(1.0,
                  static_cast<double>(l.tensor * l.context * l.data) / static_cast<double>(l.expert * l.expert_tensor));
}

SharedWeights shared_weights(const Workload& workload, const Machine& machine, const Rates& rates) {
  const Layout& l = workload.layout;
  const double data = static_cast<double>(l.data * l.context);
  return {data_group(data, static_cast<double>(l.tensor), machine, rates),
          data_group(expert_data_ranks(l), static_cast<double>(l.expert * l.expert_tensor), machine, rates),
          heaviest_weights(workload)};
}

// Each micro-batch gathers the weights for both passes and scatters its gradients (arXiv 1910.02054, section 7); what
// does not fit behind the computing is felt.
double time_sharded_data(const Workload& workload, const StageTime& stage, const Rates& rates,
                         const SharedWeights& shared) {
  const auto layers = static_cast<double>(stage.layers.dense + stage.layers.experts + stage.layers.prediction);
  const double latency = layers * rates.gather_latency * std::log2(std::max(2.0, shared.common.ranks));
  const double gradient = workload.trains_adapters ? 0 : workload.summed_bytes();
  // gathered twice, scattered once
  const double exchanged = shared.seconds(2 * gathered_bytes(workload) + gradient) + 3 * latency;
  const double window = stage.total();
  const double felt =
      std::max(0.0, exchanged - rates.sharded_overlap * window) + rates.data_leak * std::min(exchanged, window);
  return workload.micro_batches() * felt;
}

// Where each weight tensor is scattered and gathered by itself, its ring's steps are felt.
double time_tensor_exchanges(const Workload& workload, const Rates& rates, const DataGroup& group) {
  if (!workload.family->exchanges_tensors || workload.layout.sharding == Sharding::none) return 0;
  return (group.ranks - 1) * rates.exchange_latency;
}

// Gradients are summed on all ranks, or scattered and the updated weights gathered (ZeRO-1).
double time_replicated_data(const Workload& workload, const StageTime& stage, const Rates& rates,
                            const SharedWeights& shared) {
  if (workload.trains_adapters) return 0;
  const double gradient = workload.summed_bytes();
  const double back = workload.layout.sharding == Sharding::none ? gradient : workload.updated_bytes;
  const double exchanged = shared.seconds(gradient + back);
  const double window = rates.data_overlap * stage.total();
  return std::max(0.0, exchanged - window) + rates.data_leak * std::min(exchanged, window) +
         time_tensor_exchanges(workload, rates, shared.common);
}

double time_data(const Workload& workload, const Rates& rates, const StageTime& stage, const SharedWeights& shared) {
  if (shared.is_alone()) return 0;
  return workload.layout.sharding == Sharding::weights ? time_sharded_data(workload, stage, rates, shared)
                                                       : time_replicated_data(workload, stage, rates, shared);
}

// Adam reads and writes two moments and the 4-byte weight, and writes the 2-byte one.
double time_optimizer(const Workload& workload, const Rates& rates, const SharedWeights& shared) {
  constexpr double k_bytes_per_weight = 30;
  if (workload.trains_adapters) return 0;
  const bool whole = workload.layout.sharding == Sharding::none;
  const double weights =
      whole ? shared.weights.total()
            : shared.weights.common / shared.common.ranks + shared.weights.experts / shared.experts.ranks;
  return weights * k_bytes_per_weight / rates.memory;
}

}  // namespace

double StepTime::total() const {
  return products + attention + elementwise + ends + recompute + tensor + context + experts + transfers + data +
         bubble + optimizer + overhead;
}

void StepTime::scale(double factor) {
  for (double* part : {&products, &attention, &elementwise, &ends, &recompute, &tensor, &context, &experts, &transfers,
                       &data, &bubble, &optimizer, &overhead})
    *part *= factor;
}

double StepTime::tokens_per_second_per_gpu(const Workload& workload) const {
  return static_cast<double>(workload.global_batch) * static_cast<double>(workload.sequence_length) / total() /
         static_cast<double>(workload.layout.num_gpus());
}

StepClock::StepClock(const Machine& machine, const Rates& rates) : machine_(machine), rates_(rates) {}

// Only what the time of a layer depends on and a search changes is part of the key.
const PartTimes& StepClock::parts_of(const Workload& workload) {
  const Layout& layout = workload.layout;
  const std::array<int64_t, 7> key{layout.tensor,
                                   layout.context,
                                   layout.micro_batch,
                                   static_cast<int64_t>(layout.recompute),
                                   layout.expert,
                                   layout.expert_tensor,
                                   layout.sequence_parallel ? 1 : 0};
  if (last_ && key == last_key_) return *last_;
  const auto [place, is_new] = parts_.try_emplace(key);
  if (is_new) {
    PartTimes& parts = place->second;
    parts.dense = time_layer(workload, machine_, rates_, LayerKind::dense);
    if (workload.shape.experts) parts.experts = time_layer(workload, machine_, rates_, LayerKind::experts);
    parts.has_experts = workload.shape.experts.has_value();
    parts.ends = time_ends(workload, rates_);
  }
  last_key_ = key, last_ = &place->second;
  return *last_;
}

StepTime StepClock::time(const Workload& workload, bool simulate) {
  if (workload.family->own_trainer) return time_native_step(workload, machine_, rates_.native);
  const PartTimes& parts = parts_of(workload);
  const StageTime stage = time_busiest_stage(workload, parts);
  const SharedWeights shared = shared_weights(workload, machine_, rates_);
  StepTime step;
  add_stage(step, stage, workload.micro_batches());
  if (workload.layout.pipeline > 1) {
    step.bubble = simulate ? time_bubble(workload, parts) : least_bubble(workload, parts, stage.total());
    step.transfers = time_transfers(workload, machine_, rates_);
  }
  step.data = time_data(workload, rates_, stage, shared);
  step.optimizer = time_optimizer(workload, rates_, shared);
  const auto gpus = static_cast<double>(workload.layout.num_gpus());
  step.overhead =
      rates_.step_start + rates_.node_start * doublings(gpus / static_cast<double>(machine_.gpus_per_domain));
  step.scale((1 + rates_.straggling * doublings(gpus / k_gpus_per_node)) * rates_.scale *
             rates_.near_runs.factor(workload.layout));
  return step;
}

StepTime StepClock::time(const Workload& workload) { return time(workload, true); }
StepTime StepClock::least(const Workload& workload) { return time(workload, false); }

StepTime time_step(const Workload& workload, const Machine& machine, const Rates& rates) {
  return StepClock(machine, rates).time(workload);
}

}  // namespace tprimat::planner
