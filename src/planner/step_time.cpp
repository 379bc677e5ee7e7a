#include "planner/step_time.h"

#include <algorithm>
#include <cmath>

#include "planner/weights.h"

namespace tprimat {
namespace {

double doublings(double ratio) { return ratio > 1 ? std::log2(ratio) : 0; }

// One micro-batch on one pipeline stage.
struct StageTime {
  LayerTime layer;
  Phases ends;
  double layers = 0;
  double ends_share = 1;
  double total() const { return layers * (layer.total().both() + layer.repeated) + ends_share * ends.both(); }
};

StageTime time_stage(const Workload& workload, const Machine& machine, const Rates& rates) {
  StageTime stage;
  stage.layer = time_layer(workload, machine, rates);
  stage.ends = time_ends(workload, rates);
  stage.layers = static_cast<double>(workload.shape.model.num_layers) / static_cast<double>(workload.layout.pipeline);
  stage.ends_share = workload.layout.pipeline > 1 ? rates.head_share : 1;
  return stage;
}

void add_stage(StepTime& step, const StageTime& stage, double micro_batches) {
  const double layers = stage.layers * micro_batches;
  step.products = layers * stage.layer.products.both();
  step.attention = layers * stage.layer.attention.both();
  step.elementwise = layers * stage.layer.elementwise.both();
  step.tensor = layers * stage.layer.tensor.both();
  step.context = layers * stage.layer.context.both();
  step.recompute = layers * stage.layer.repeated;
  step.ends = micro_batches * stage.ends_share * stage.ends.both();
}

// 1F1B and its interleaved form: (p - 1) / v times a stage's time (arXiv 2104.04473, section 2.2).
void add_pipeline(StepTime& step, const Workload& workload, const Rates& rates, double stage) {
  const Layout& layout = workload.layout;
  if (layout.pipeline <= 1) return;
  const auto others = static_cast<double>(layout.pipeline - 1);
  step.bubble = stage * others / static_cast<double>(layout.chunks);
  const double split = workload.family->fused_attention ? static_cast<double>(layout.tensor) : 1;
  const double tokens =
      static_cast<double>(layout.micro_batch * workload.sequence_length) / static_cast<double>(layout.context);
  const double transfer =
      k_half_bytes * tokens * static_cast<double>(workload.shape.model.hidden_size) / split / rates.network;
  const double steady = 2 * workload.micro_batches() * static_cast<double>(layout.chunks) * transfer;
  step.transfers = rates.transfer_share * steady + 2 * others * transfer;
}

struct DataGroup {
  double ranks = 1;
  double bandwidth = 1;  // bytes/s that one rank sees
};

// A ring over nodes shares a node's network among the ranks that it has there.
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

// Weights are gathered for each pass, gradients scattered once; what does not fit behind the computing is felt.
double time_sharded_data(const Workload& workload, const StageTime& stage, const Rates& rates, const DataGroup& group,
                         double weights) {
  const double latency = stage.layers * rates.gather_latency * std::log2(std::max(2.0, group.ranks));
  const double gather = k_half_bytes * weights * (group.ranks - 1) / group.ranks / group.bandwidth + latency;
  const double exchanged = 4 * gather;  // twice gathered, once scattered in twice the width
  const double window = stage.total();
  const double felt =
      std::max(0.0, exchanged - rates.data_overlap * window) + rates.data_leak * std::min(exchanged, window);
  return workload.micro_batches() * felt;
}

double time_replicated_data(const Workload& workload, const StageTime& stage, const Rates& rates,
                            const DataGroup& group, double weights) {
  const double gradient = workload.family->fp32_gradients ? 4 : 2;
  const double exchanged = weights * (group.ranks - 1) / group.ranks * (gradient + k_half_bytes) / group.bandwidth;
  const double window = rates.data_overlap * stage.total();
  return std::max(0.0, exchanged - window) + rates.data_leak * std::min(exchanged, window);
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

double StepTime::tokens_per_second_per_gpu(const Workload& workload) const {
  return static_cast<double>(workload.global_batch * workload.sequence_length) / total() /
         static_cast<double>(workload.layout.num_gpus());
}

StepTime time_step(const Workload& workload, const Machine& machine, const Rates& rates) {
  const StageTime stage = time_stage(workload, machine, rates);
  StepTime step;
  add_stage(step, stage, std::max(1.0, workload.micro_batches()));
  add_pipeline(step, workload, rates, stage.total());
  step.data = time_data(workload, machine, rates, stage);
  step.optimizer = time_optimizer(workload, rates);
  constexpr double k_gpus_per_node = 8;
  const auto gpus = static_cast<double>(workload.layout.num_gpus());
  const double busy = step.total();
  const double start =
      rates.step_start + rates.node_start * doublings(gpus / static_cast<double>(machine.gpus_per_domain));
  const double slowed = (1 + rates.straggling * doublings(gpus / k_gpus_per_node)) * rates.scale;
  step.overhead = (busy + start) * slowed - busy;
  return step;
}

}  // namespace tprimat
