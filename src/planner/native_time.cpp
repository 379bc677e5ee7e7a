#include "planner/native_time.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tprimat {
namespace {

// Core-seconds of one rank's work on one micro-batch, in one direction, and what its exchanges add.
struct NativeWork {
  double products = 0, attention = 0, elementwise = 0;
  double exchanged = 0;  // bytes that the rank sends
  double exchanges = 0;  // how many
  double calls = 0;      // layers entered
  NativeWork& operator+=(const NativeWork& other) {
    products += other.products, attention += other.attention, elementwise += other.elementwise;
    exchanged += other.exchanged, exchanges += other.exchanges, calls += other.calls;
    return *this;
  }
};
NativeWork operator*(NativeWork work, double factor) {
  for (double* part :
       {&work.products, &work.attention, &work.elementwise, &work.exchanged, &work.exchanges, &work.calls})
    *part *= factor;
  return work;
}
NativeWork operator+(NativeWork a, const NativeWork& b) { return a += b; }

class NativeStep {
 public:
  NativeStep(const Workload& workload, const Machine& machine, const NativeRates& rates)
      : workload_(workload), model_(workload.shape.model), layout_(workload.layout), rates_(rates) {
    cores_ = static_cast<double>(std::max<int64_t>(1, machine.cores));
    ranks_ = static_cast<double>(layout_.num_gpus());
    threads_ = std::max(1.0, std::floor(cores_ / ranks_));
    tokens_ =
        static_cast<double>(layout_.micro_batch * workload.sequence_length) / static_cast<double>(layout_.context);
    tensor_ = static_cast<double>(layout_.tensor);
    hidden_ = static_cast<double>(model_.hidden_size);
    inner_ = static_cast<double>(model_.ffn_hidden_size) / tensor_;
    query_ = static_cast<double>(model_.num_attention_heads * model_.head_dim) / tensor_;
    key_ = static_cast<double>(std::max(model_.num_key_value_heads, layout_.tensor) * model_.head_dim) / tensor_;
    element_ = workload.precision == PlanPrecision::fp32 ? 4 : k_half_bytes;
    stages_ = static_cast<double>(layout_.pipeline);
    int64_t most = 0;
    workload.visit_stages([&](int64_t stage) { most = std::max(most, workload.stage_layers(stage)); });
    layers_ = static_cast<double>(most);
    micro_batches_ = std::max(1.0, workload.micro_batches());
    data_ = static_cast<double>(layout_.data * layout_.context);
  }

  StepTime time() const {
    const NativeWork stage = (forward() + backward()) * layers_ + transfers(), head = ends();
    StepTime step;
    step.products = wall(stage.products), step.attention = wall(stage.attention);
    step.elementwise = wall(stage.elementwise) + calls(stage), step.tensor = exchange(stage);
    step.ends = wall(head.products + head.elementwise) + exchange(head);
    const double whole = step.products + step.attention + step.elementwise + step.tensor;
    step.scale(micro_batches_);
    step.bubble = (stages_ - 1) * whole / static_cast<double>(layout_.chunks);
    const NativeWork shared = gradients();
    step.data = exchange(shared), step.optimizer = wall(update());
    step.overhead = rates_.step_start;
    share_cores(step, micro_batches_ * waiting(stage) + waiting(shared));
    step.scale(rates_.scale);
    return step;
  }

 private:
  // A rank's threads work on it while all other ranks work too.
  double wall(double core_seconds) const { return core_seconds / threads_; }
  double calls(const NativeWork& work) const {
    return work.calls * (rates_.layer_call + (threads_ > 1 ? rates_.thread_call : 0));
  }
  double crowding() const { return std::max(0.0, ranks_ / cores_ - 1); }
  // Ranks copy at the same time through the memory that they share.
  double copying(const NativeWork& work) const { return work.exchanged / (rates_.exchange / std::min(ranks_, cores_)); }
  double waiting(const NativeWork& work) const {
    return work.exchanges * (rates_.exchange_start + rates_.turn * crowding());
  }
  double exchange(const NativeWork& work) const { return copying(work) + waiting(work); }

  // Ranks beyond the cores take turns. What one waits for in a pipeline another computes, so bubbles cost nothing, and
  // only one stage has the head.
  void share_cores(StepTime& step, double waited) const {
    if (ranks_ <= cores_) return;
    const double busy = step.total() - step.bubble - step.ends * (1 - 1 / stages_) - waited;
    step.scale(std::max(1.0, (ranks_ / cores_ * busy + waited) / step.total()));
  }

  double product(double rows, double columns, double depth) const {
    const double reached = rates_.product / (1 + rates_.saturation * (1 / rows + 1 / columns + 1 / depth));
    return 2 * rows * columns * depth / reached;
  }
  NativeWork linear(double outputs, double inputs, bool backward) const {
    NativeWork work;
    work.products = backward ? product(tokens_, inputs, outputs) + product(outputs, inputs, tokens_)
                             : product(tokens_, outputs, inputs);
    return work;
  }

  double up() const { return (model_.mlp == MlpKind::swiglu ? 2 : 1) * inner_; }
  double stream_share() const { return layout_.sequence_parallel ? tensor_ : 1; }

  double seen_keys() const {
    const auto length = static_cast<double>(workload_.sequence_length);
    const auto window =
        std::min(length, static_cast<double>(model_.sliding_window.value_or(workload_.sequence_length)));
    return window * (length - window / 2) / length;
  }

  // Norms and residuals of the stream, rotary positions, the MLP's activation.
  double elements() const {
    return tokens_ * (10 * hidden_ / stream_share() + 3 * (query_ + key_) + 2 * (up() + inner_));
  }

  NativeWork pass(bool backward) const {
    NativeWork work = linear(query_ + 2 * key_, hidden_, backward) + linear(hidden_, query_, backward) +
                      linear(up(), hidden_, backward) + linear(hidden_, inner_, backward);
    const double twice = backward ? 2 : 1;
    work.attention = (backward ? 2.5 : 1) * 4 * tokens_ * seen_keys() * query_ / rates_.attention;
    work.elementwise = twice * elements() * rates_.element_seconds;
    work.calls = twice;
    return work + tensor_exchange() + context_exchange();
  }

  NativeWork forward() const { return pass(false); }
  NativeWork backward() const {
    NativeWork work = pass(true);
    if (layout_.recompute == Recompute::full) work += pass(false);
    if (layout_.recompute == Recompute::selective) work.elementwise += elements() * rates_.element_seconds / 2;
    return work;
  }

  // Two sums each way; with sequence parallelism each is a scatter and a gather.
  NativeWork tensor_exchange() const {
    NativeWork work;
    if (layout_.tensor == 1) return work;
    work.exchanged = 2 * 2 * tokens_ * hidden_ * element_ * (tensor_ - 1) / tensor_;
    work.exchanges = layout_.sequence_parallel ? 4 : 2;
    return work;
  }

  // Keys and values of whole sequences, or their gradients.
  NativeWork context_exchange() const {
    NativeWork work;
    if (layout_.context == 1) return work;
    work.exchanged = tokens_ * 2 * key_ * element_ * static_cast<double>(layout_.context - 1);
    work.exchanges = 1;
    return work;
  }

  NativeWork transfers() const {
    NativeWork work;
    if (layout_.pipeline == 1) return work;
    work.exchanges = 2 * static_cast<double>(layout_.chunks);
    work.exchanged = work.exchanges * tokens_ * hidden_ / stream_share() * element_;
    return work;
  }

  // The stage with the head does it for each micro-batch.
  NativeWork ends() const {
    const double columns = static_cast<double>(model_.vocab_size) / tensor_;
    NativeWork work = linear(columns, hidden_, false) + linear(columns, hidden_, true);
    work.elementwise = tokens_ * columns * rates_.score_seconds;
    return work;
  }

  double weights() const {
    const double layer = hidden_ * (2 * query_ + 2 * key_ + up() + inner_);
    const double tables = layout_.pipeline > 1 || model_.tied_embeddings ? 1 : 2;
    return layers_ * layer + tables * static_cast<double>(model_.vocab_size) / tensor_ * hidden_;
  }

  bool shares(Sharding from) const { return layout_.sharding >= from && data_ > 1; }

  // Sums of gradients and shared weights between data-parallel ranks.
  NativeWork gradients() const {
    NativeWork work;
    if (data_ <= 1) return work;
    const double part = weights() * (data_ - 1) / data_;
    const double units = layers_ + 2;
    const double sums = shares(Sharding::gradients) ? micro_batches_ : 1;
    const double gathers = shares(Sharding::weights) ? 2 * micro_batches_ : shares(Sharding::optimizer) ? 1 : 0;
    const double both_ways = shares(Sharding::optimizer) ? 1 : 2;
    work.exchanged = part * (4 * both_ways * sums + element_ * gathers);
    work.exchanges = units * (sums + gathers);
    return work;
  }

  // Clearing gradients, their norm, and AdamW.
  double update() const {
    const double owned = layout_.sharding == Sharding::none ? weights() : weights() / data_;
    return owned * rates_.update_seconds;
  }

  const Workload& workload_;
  const ModelSpec& model_;
  const Layout& layout_;
  const NativeRates& rates_;
  double cores_ = 1, ranks_ = 1, threads_ = 1, tokens_ = 0, tensor_ = 1, hidden_ = 0, inner_ = 0, query_ = 0, key_ = 0;
  double element_ = 2, stages_ = 1, layers_ = 0, micro_batches_ = 1, data_ = 1;
};

}  // namespace

StepTime time_native_step(const Workload& workload, const Machine& machine, const NativeRates& rates) {
  return NativeStep(workload, machine, rates).time();
}

NativeRates resolve_native_rates(const ParameterSet& p, const Machine& machine, const Workload& workload) {
  constexpr std::string_view k_scope = "native";
  const bool wide = workload.precision == PlanPrecision::fp32;
  const auto own = [&](std::string_view key) { return p.scoped(key, k_scope, 1); };
  const double cores = static_cast<double>(std::max<int64_t>(1, machine.cores));
  const double peak = machine.peak(workload.precision) / cores, memory = machine.memory_bandwidth / cores;
  NativeRates rates;
  rates.product = peak * own(wide ? "product_32" : "product_16");
  rates.saturation = own(wide ? "saturation_32" : "saturation_16");
  rates.attention = peak * own(wide ? "attention_32" : "attention_16");
  rates.element_seconds = own(wide ? "element_bytes_32" : "element_bytes_16") / memory;
  rates.score_seconds = own("loss_bytes") / memory;
  rates.update_seconds = own("update_bytes") / memory;
  rates.layer_call = own("layer_call");
  rates.thread_call = own("thread_call");
  rates.exchange = machine.memory_bandwidth * own("exchange");
  rates.exchange_start = own("exchange_start");
  rates.turn = own("turn");
  rates.step_start = own("step_start");
  rates.scale = own("scale");
  return rates;
}

Machine processor_machine(const ProcessorFacts& facts) {
  Machine machine;
  machine.id = facts.name.empty() ? "cpu" : facts.name;
  machine.architecture = "cpu";
  machine.peak_16 = facts.peak_16, machine.peak_32 = facts.peak_32;
  machine.memory_bytes = facts.memory_bytes;
  machine.memory_bandwidth = facts.memory_bandwidth;
  machine.cores = facts.threads;
  machine.gpus_per_domain = std::numeric_limits<int64_t>::max();
  return machine;
}

}  // namespace tprimat
