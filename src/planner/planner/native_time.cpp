#include "planner/step_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tprimat::planner {
namespace {

// What one rank does of something: core-seconds, operations started, and what it exchanges with other ranks.
struct NativeWork {
  double products = 0, attention = 0, elementwise = 0;
  double calls = 0;
  double copied = 0;    // bytes; those that are summed up count for the sum too
  double messages = 0;  // that it sends
  double waits = 0;     // for other ranks
  double sent = 0;      // bytes over the network between nodes
  NativeWork& operator+=(const NativeWork& other) {
    products += other.products, attention += other.attention, elementwise += other.elementwise;
    calls += other.calls, copied += other.copied, messages += other.messages, waits += other.waits;
    sent += other.sent;
    return *this;
  }
};
NativeWork operator*(NativeWork work, double factor) {
  for (double* part : {&work.products, &work.attention, &work.elementwise, &work.calls, &work.copied, &work.messages,
                       &work.waits, &work.sent})
    *part *= factor;
  return work;
}
NativeWork operator+(NativeWork a, const NativeWork& b) { return a += b; }

// Exchanges of `size` ranks, as src/engine/comm/messages makes them: each rank sends to every other one.
struct NativeGroup {
  double size = 1;
  double near = 1;  // of them, on a rank's own node
  double others() const { return size - 1; }

  NativeWork gather(double own_bytes) const { return size > 1 ? exchange(others() * own_bytes, 1) : NativeWork(); }
  NativeWork scatter(double bytes) const {
    constexpr double k_summed = 3;  // copied once, read and written once more to be added up
    return size > 1 ? exchange(others() * bytes / size, k_summed) : NativeWork();
  }
  NativeWork sum(double bytes) const {
    constexpr double k_small = 8 << 10;  // bytes that everybody sends to all
    return bytes <= k_small ? scatter(size * bytes) : scatter(bytes) + gather(bytes / size);
  }

 private:
  NativeWork exchange(double bytes, double passes) const {
    NativeWork work;
    work.copied = passes * bytes, work.messages = others(), work.waits = 1;
    work.sent = bytes * (size - std::min(size, near)) / others();
    return work;
  }
};

constexpr double k_sum_bytes = 4;  // of an element of a gradient, or of the loss

class NativeStep {
 public:
  NativeStep(const Workload& workload, const Machine& machine, const NativeRates& rates)
      : workload_(workload), model_(workload.shape), layout_(workload.layout), rates_(rates) {
    ranks_ = static_cast<double>(layout_.num_gpus());
    node_ranks_ = std::min(ranks_, static_cast<double>(std::max<int64_t>(1, machine.gpus_per_domain)));
    cores_ = static_cast<double>(std::max<int64_t>(1, machine.cores)) * std::ceil(ranks_ / node_ranks_);
    threads_ = std::max(1.0, std::floor(cores_ / ranks_));
    tokens_ =
        static_cast<double>(layout_.micro_batch * workload.sequence_length) / static_cast<double>(layout_.context);
    const auto tensor = static_cast<double>(layout_.tensor), context = static_cast<double>(layout_.context);
    tensor_ = group(tensor, 1), context_ = group(context, tensor);
    data_ = group(static_cast<double>(layout_.data) * context, tensor);
    stream_tokens_ = splits_stream() ? tokens_ / tensor_.size : tokens_;
    hidden_ = static_cast<double>(model_.hidden_size);
    inner_ = static_cast<double>(model_.ffn_hidden_size) / tensor_.size;
    query_ = static_cast<double>(model_.num_attention_heads * model_.head_dim) / tensor_.size;
    key_ = static_cast<double>(std::max(model_.num_key_value_heads, layout_.tensor) * model_.head_dim) / tensor_.size;
    vocabulary_ = static_cast<double>(model_.vocab_size) / tensor_.size;
    scores_ = seen_scores() * static_cast<double>(model_.num_attention_heads) / tensor_.size;
    element_ = workload.precision == PlanPrecision::fp32 ? 4 : k_half_bytes;
    micro_batches_ = std::max(1.0, workload.micro_batches());
    workload.visit_stages([&](int64_t stage) { most_weights_ = std::max(most_weights_, owned(weights(stage))); });
  }

  StepTime time() const {
    const NativeWork layer = both_passes();
    const auto micro_batch = [&](int64_t stage) { return layer * layers(stage) + ends(stage) + transfers(); };
    const auto last = [&](int64_t stage) { return update(stage) + gradients(stage); };
    const auto seconds = [&](int64_t stage) { return wall(micro_batch(stage)); };
    StepTime step = parts(slowest(seconds));
    step.bubble = (sum(seconds) - seconds(slowest(seconds))) / static_cast<double>(layout_.chunks);
    step.optimizer = most([&](int64_t stage) { return wall(update(stage)); });
    step.data = most([&](int64_t stage) { return wall(gradients(stage)); });
    take_turns(step,
               sum([&](int64_t stage) { return micro_batches_ * worked(micro_batch(stage)) + worked(last(stage)); }),
               micro_batches_ * most([&](int64_t stage) { return waiting(micro_batch(stage)); }) +
                   most([&](int64_t stage) { return waiting(last(stage)); }));
    step.overhead = rates_.step_start;
    step.scale(rates_.scale);
    return step;
  }

 private:
  template <class Value>
  double sum(const Value& value) const {
    double all = 0;
    for (int64_t stage = 0; stage < layout_.pipeline; ++stage) all += value(stage);
    return all;
  }
  template <class Value>
  int64_t slowest(const Value& value) const {
    int64_t found = 0;
    for (int64_t stage = 1; stage < layout_.pipeline; ++stage)
      if (value(stage) > value(found)) found = stage;
    return found;
  }
  template <class Value>
  double most(const Value& value) const {
    return value(slowest(value));
  }

  // Core-seconds, without those of waiting.
  double worked(const NativeWork& work) const {
    const double split = threads_ > 1 ? 1 + rates_.split : 1;
    const double call = rates_.call + (threads_ > 1 ? rates_.thread_call : 0);
    return split * work.products + work.attention + work.elementwise + threads_ * call * work.calls +
           work.copied * rates_.copy_seconds + work.messages * rates_.message;
  }
  double crowding() const { return std::max(0.0, ranks_ / cores_ - 1); }
  double waiting(const NativeWork& work) const {
    return work.waits * rates_.turn * crowding() + (work.sent > 0 ? work.sent / rates_.network : 0);
  }
  // A rank's threads work on it while all other ranks work too.
  double wall(const NativeWork& work) const { return worked(work) / threads_ + waiting(work); }

  // Ranks beyond the cores take turns: `busy` core-seconds of one rank of every stage. What one waits for in a pipeline
  // another computes, so bubbles cost nothing.
  void take_turns(StepTime& step, double busy, double waited) const {
    if (ranks_ <= cores_) return;
    const double all = busy * ranks_ / static_cast<double>(layout_.pipeline);
    const double seconds = all / cores_ * (1 + rates_.crowd * crowding()) + waited;
    if (seconds <= step.total()) return;
    step.bubble = 0;
    step.scale(seconds / step.total());
  }

  // Ranks that are so many apart: neighbours fill a node first.
  NativeGroup group(double size, double apart) const {
    return {size, std::clamp(std::floor(node_ranks_ / apart), 1.0, std::max(1.0, size))};
  }
  bool spans_nodes() const { return node_ranks_ < ranks_; }

  bool splits_stream() const { return layout_.sequence_parallel && layout_.tensor > 1; }

  NativeWork product(double rows, double columns, double depth) const {
    const double reached = rates_.product / (1 + rates_.saturation * (1 / rows + 1 / columns + 1 / depth));
    NativeWork work;
    work.products = 2 * rows * columns * depth / reached;
    work.calls = 1;
    return work;
  }
  NativeWork linear(double outputs, double inputs, bool backward) const {
    return backward ? product(tokens_, inputs, outputs) + product(outputs, inputs, tokens_)
                    : product(tokens_, outputs, inputs);
  }
  NativeWork elements(double count, double calls) const {
    NativeWork work;
    work.elementwise = count * rates_.element_seconds, work.calls = calls;
    return work;
  }

  double up() const { return (model_.mlp == MlpKind::swiglu ? 2 : 1) * inner_; }

  // Scores of one head of all sequences that a rank computes: squares of 64 queries and 64 keys, whole where any of
  // their keys is seen (ops/cpu/attention.cpp). Of context-parallel ranks each has two pieces of a sequence.
  double seen_scores() const {
    const int64_t length = workload_.sequence_length, pieces = layout_.context == 1 ? 1 : 2 * layout_.context;
    const int64_t piece = length / pieces;
    double seen = seen_scores(0, piece);
    if (pieces > 1) seen += seen_scores(length - piece, piece);
    return seen * static_cast<double>(layout_.micro_batch);
  }
  double seen_scores(int64_t first, int64_t count) const {
    constexpr int64_t k_tile = 64;
    const int64_t window = model_.sliding_window.value_or(workload_.sequence_length);
    double seen = 0;
    for (int64_t begin = first; begin < first + count; begin += k_tile) {
      const int64_t rows = std::min(k_tile, first + count - begin);
      const int64_t first_tile = std::max<int64_t>(0, begin + 1 - window) / k_tile;
      seen += static_cast<double>(rows * ((begin + rows + k_tile - 1) / k_tile - first_tile) * k_tile);
    }
    return seen;
  }
  // Backward five products where forward has two.
  NativeWork attention(bool backward) const {
    NativeWork work;
    work.attention = scores_ * ((backward ? 2.5 : 1) * 4 * static_cast<double>(model_.head_dim) / rates_.attention +
                                (backward ? 1.5 : 1) * rates_.softmax_seconds);
    work.calls = 1;
    return work;
  }

  // Norms and residuals of the stream, rotary positions, the MLP's activation.
  double layer_elements() const { return 2 * stream_tokens_ * hidden_ + tokens_ * (query_ + key_ + inner_); }

  NativeWork products(bool backward) const {
    return linear(query_ + 2 * key_, hidden_, backward) + linear(hidden_, query_, backward) +
           linear(up(), hidden_, backward) + linear(hidden_, inner_, backward);
  }
  NativeWork forward() const { return products(false) + attention(false) + elements(layer_elements(), 4); }
  NativeWork compute() const {
    NativeWork work = forward() + products(true) + attention(true) + elements(2 * layer_elements(), 4);
    if (layout_.recompute == Recompute::full) work += forward();
    if (layout_.recompute == Recompute::selective)
      work += elements(2 * stream_tokens_ * hidden_ + tokens_ * inner_, 3);  // norms and activation
    return work;
  }
  double forward_passes() const { return layout_.recompute == Recompute::full ? 2 : 1; }

  // Where a tensor-parallel region begins and ends.
  NativeWork enter() const {
    return splits_stream() ? tensor_.gather(stream_tokens_ * hidden_ * element_) : NativeWork();
  }
  NativeWork leave() const {
    const double bytes = tokens_ * hidden_ * element_;
    return splits_stream() ? tensor_.scatter(bytes) : tensor_.sum(bytes);
  }
  // Two regions of a layer; backward the input and the output's gradient enter.
  NativeWork tensor_exchange() const {
    return (enter() + leave()) * (2 * forward_passes()) + (enter() * 2 + leave()) * 2;
  }

  // Keys and values of whole sequences forward and backward, and their gradients. Rows are packed before and put in
  // order after, which moves half as much as a copy between ranks.
  NativeWork context_exchange() const {
    if (layout_.context == 1) return {};
    const double own = 2 * tokens_ * key_ * element_;
    NativeWork gathered = context_.gather(own), scattered = context_.scatter(own * context_.size);
    gathered.copied += own * (1 + context_.size) / 2;
    scattered.copied += own * (1 + 2 * context_.size) / 2;
    return gathered * (forward_passes() + 1) + scattered;
  }

  NativeWork both_passes() const { return compute() + tensor_exchange() + context_exchange(); }

  // Of one micro-batch: each chunk takes a stream and hands one on, each way.
  NativeWork transfers() const {
    if (layout_.pipeline == 1) return {};
    const double values = stream_tokens_ * hidden_;
    NativeWork work = elements(values, 0);
    work.copied = values * element_, work.messages = 1, work.waits = 1;
    if (spans_nodes()) work.sent = values * element_;
    return work * (2 * static_cast<double>(layout_.chunks));
  }

  NativeWork embedding() const { return elements(4 * tokens_ * hidden_, 2) + leave() + enter(); }
  NativeWork head() const {
    NativeWork work = linear(vocabulary_, hidden_, false) + linear(vocabulary_, hidden_, true) +
                      elements(3 * stream_tokens_ * hidden_, 5) + enter() + leave();
    // Tensor-parallel ranks take the exponential twice, and share the largest score and two sums of each token.
    work.elementwise += (layout_.tensor > 1 ? 1.5 : 1) * tokens_ * vocabulary_ * rates_.score_seconds;
    if (layout_.tensor > 1) work += tensor_.sum(tokens_ * k_sum_bytes) + tensor_.sum(2 * tokens_ * k_sum_bytes);
    return work;
  }
  NativeWork ends(int64_t stage) const {
    NativeWork work;
    if (stage == 0) work += embedding();
    if (stage == layout_.pipeline - 1) work += head();
    return work;
  }
  double layers(int64_t stage) const { return static_cast<double>(workload_.stage_layers(stage)); }

  // A stage's micro-batches, by their parts.
  StepTime parts(int64_t stage) const {
    const auto seconds = [&](const NativeWork& work) { return micro_batches_ * wall(work); };
    const NativeWork computed = compute() * layers(stage);
    NativeWork products, attended;
    products.products = computed.products, attended.attention = computed.attention;
    StepTime step;
    step.products = seconds(products), step.attention = seconds(attended);
    step.elementwise = seconds(computed) - step.products - step.attention;
    step.tensor = seconds(tensor_exchange() * layers(stage));
    step.context = seconds(context_exchange() * layers(stage));
    step.ends = seconds(ends(stage)), step.transfers = seconds(transfers());
    return step;
  }

  // Weights that are exchanged together: of a layer, of the embedding, of the head; how many there are of each.
  struct Unit {
    double size = 0, count = 0;
  };
  std::array<Unit, 3> units_of(int64_t stage) const {
    const double layer = hidden_ * (2 * query_ + 2 * key_ + up() + inner_ + 2), table = vocabulary_ * hidden_;
    const bool first = stage == 0, last = stage == layout_.pipeline - 1;
    return {{{layer, layers(stage)},
             {table, first || (last && model_.tied_embeddings) ? 1.0 : 0.0},
             {hidden_ + (model_.tied_embeddings ? 0 : table), last ? 1.0 : 0.0}}};
  }
  double weights(int64_t stage) const {
    double all = 0;
    for (const Unit& unit : units_of(stage)) all += unit.size * unit.count;
    return all;
  }
  double owned(double weights) const { return layout_.sharding == Sharding::none ? weights : weights / data_.size; }
  bool shares(Sharding from) const { return layout_.sharding >= from && data_.size > 1; }

  // Main memory's share of the traffic of weights and their states, whose rest stays in a core's cache and takes less.
  double from_memory() const {
    constexpr double k_state_bytes = 16, k_cached = 0.4;
    const double beyond = std::max(0.0, 1 - rates_.cached_bytes / (k_state_bytes * std::max(1.0, most_weights_)));
    return k_cached + (1 - k_cached) * beyond;
  }

  // What ranks exchange once a step whatever the layout, and the norms' gradients of sequence-parallel ones.
  NativeWork common_sums(int64_t stage) const {
    NativeWork work = group(ranks_, 1).sum(2 * sizeof(double));
    const double norms = 2 * layers(stage) + (stage == layout_.pipeline - 1 ? 1 : 0);
    const double times = shares(Sharding::gradients) ? micro_batches_ : 1;
    if (splits_stream()) work += tensor_.sum(hidden_ * k_sum_bytes) * (norms * times);
    const bool has_copy = stage == 0 || stage == layout_.pipeline - 1;
    if (layout_.pipeline > 1 && model_.tied_embeddings && has_copy)
      work += group(2, spans_nodes() ? node_ranks_ : 1).sum(owned(vocabulary_ * hidden_) * k_sum_bytes);
    return work;
  }

  // Three gathered units are kept, so that a pass begins with those that the one before ended with.
  double gathers(double units) const {
    constexpr double k_kept = 3;
    return units + (2 * micro_batches_ - 1) * std::max(0.0, units - k_kept);
  }

  // Sums of gradients and shared weights between data-parallel ranks.
  NativeWork gradients(int64_t stage) const {
    NativeWork work = common_sums(stage);
    if (data_.size <= 1) return work;
    NativeWork sums, gathered;
    double units = 0;
    for (const auto& [size, count] : units_of(stage)) {
      const double bytes = size * k_sum_bytes;
      sums += (shares(Sharding::optimizer) ? data_.scatter(bytes) : data_.sum(bytes)) * count;
      gathered += data_.gather(size / data_.size * element_) * count;
      units += count;
    }
    if (shares(Sharding::gradients)) sums = sums * micro_batches_;
    if (shares(Sharding::weights)) gathered = gathered * (gathers(units) / std::max(units, 1.0));
    NativeWork exchanged = shares(Sharding::optimizer) ? sums + gathered : sums;
    exchanged.copied *= from_memory();
    return work + exchanged;
  }

  // Weights whose gradients no product writes first, so that they are cleared: those of an embedding without a head.
  double added_only(int64_t stage) const {
    const bool has_head = model_.tied_embeddings && stage == layout_.pipeline - 1;
    return stage == 0 && !has_head ? vocabulary_ * hidden_ : 0;
  }

  // Clearing gradients, their norm, and AdamW: `update_seconds` is of the last two, 36 bytes per weight; clearing is 4.
  NativeWork update(int64_t stage) const {
    constexpr double k_clearing = 1.0 / 9;
    const double all = weights(stage), added = added_only(stage);
    double cleared = shares(Sharding::gradients) ? owned(all) : added;
    if (shares(Sharding::gradients))
      cleared += micro_batches_ * (added + 2 * owned(all));  // and added to the own share
    NativeWork work;
    work.elementwise = (owned(all) + k_clearing * cleared) * rates_.update_seconds * from_memory();
    work.calls = 3;
    return work;
  }

  const Workload& workload_;
  const ModelSpec& model_;
  const Layout& layout_;
  const NativeRates& rates_;
  NativeGroup tensor_, context_, data_;
  double cores_ = 1, ranks_ = 1, node_ranks_ = 1, threads_ = 1, tokens_ = 0, stream_tokens_ = 0, scores_ = 0;
  double hidden_ = 0, inner_ = 0, query_ = 0, key_ = 0, vocabulary_ = 0;
  double element_ = 2, micro_batches_ = 1, most_weights_ = 0;
};

}  // namespace

StepTime time_native_step(const Workload& workload, const Machine& machine, const NativeRates& rates) {
  return NativeStep(workload, machine, rates).time();
}

}  // namespace tprimat::planner
