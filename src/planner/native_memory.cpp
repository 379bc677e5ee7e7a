#include "planner/native_memory.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "spec/pipeline_schedule.h"

namespace tprimat {
namespace {

double round_to(double value, double step) { return std::ceil(value / step) * step; }

// How ArenaPlan counts: buffers begin at cache lines, and what is reserved after a rewind shares memory.
class NativeArena {
 public:
  using Part = double MemoryEstimate::*;

  void reserve(Part part, double bytes) {
    constexpr double k_alignment = 128;
    next_ += round_to(bytes, k_alignment);
    if (next_ <= total_) return;
    estimate_.*part += next_ - total_;
    total_ = next_;
  }
  double mark() const { return next_; }
  void rewind(double mark) { next_ = mark; }
  void seek_end() { next_ = total_; }
  double total() const { return total_; }

  MemoryEstimate finish() {
    constexpr double k_huge_page = 2 << 20;
    estimate_.slack = round_to(total_ + 1, k_huge_page) - total_;
    return estimate_;
  }

 private:
  double next_ = 0, total_ = 0;
  MemoryEstimate estimate_;
};

// Consecutive layers that a stage runs at a time.
struct NativeChunk {
  int64_t layers = 0;
  bool embeds = false, classifies = false;
  double banks = 0;  // micro-batches under way at most
};

// Micro-batches of each chunk under way at most. The schedule repeats itself after PP of them.
std::vector<int64_t> most_under_way(const Layout& layout, int64_t stage, int64_t micro_batches) {
  const int64_t rounds = std::clamp<int64_t>((micro_batches + layout.pipeline - 1) / layout.pipeline, 1, 4);
  const int64_t scheduled = layout.chunks == 1 ? std::min(micro_batches, layout.pipeline) : rounds * layout.pipeline;
  return micro_batches_under_way(pipeline_schedule(parallel_spec(layout), static_cast<int>(stage), scheduled),
                                 layout.chunks);
}

std::vector<NativeChunk> chunks_of_stage(const Workload& workload, int64_t stage) {
  const Layout& layout = workload.layout;
  const auto micro_batches = std::max<int64_t>(1, static_cast<int64_t>(workload.micro_batches()));
  const std::vector<int64_t> banks = most_under_way(layout, stage, micro_batches);
  const int64_t all = layout.pipeline * layout.chunks;
  std::vector<NativeChunk> chunks;
  for (int64_t chunk = 0; chunk < layout.chunks; ++chunk) {
    const int64_t place = chunk * layout.pipeline + stage;
    chunks.push_back({workload.chunk_layers(place), place == 0, place == all - 1,
                      static_cast<double>(banks[static_cast<size_t>(chunk)])});
  }
  return chunks;
}

double share(int64_t count, int64_t ranks) {
  return std::ceil(static_cast<double>(count) / static_cast<double>(ranks));
}

// What the trainer reserves, in the order in which it does.
class NativePlan {
 public:
  NativePlan(const Workload& workload, int64_t stage)
      : workload_(workload), model_(workload.shape.model), layout_(workload.layout), stage_(stage) {
    tokens_ = static_cast<double>(layout_.micro_batch) *
              std::floor(static_cast<double>(workload.sequence_length) / static_cast<double>(layout_.context));
    splits_stream_ = layout_.sequence_parallel && layout_.tensor > 1;
    stream_tokens_ = splits_stream_ ? std::floor(tokens_ / static_cast<double>(layout_.tensor)) : tokens_;
    hidden_ = static_cast<double>(model_.hidden_size);
    query_heads_ = share(model_.num_attention_heads, layout_.tensor);
    key_heads_ = share(model_.num_key_value_heads, layout_.tensor);
    const auto head_dim = static_cast<double>(model_.head_dim);
    query_width_ = query_heads_ * head_dim;
    row_width_ = (query_heads_ + 2 * key_heads_) * head_dim;
    inner_ = share(model_.ffn_hidden_size, layout_.tensor);
    up_ = model_.mlp == MlpKind::swiglu ? 2 * inner_ : inner_;
    vocabulary_ = share(model_.vocab_size, layout_.tensor);
    element_ = workload.precision == PlanPrecision::fp32 ? 4 : k_half_bytes;
    data_ranks_ = static_cast<double>(layout_.data * layout_.context);
  }

  MemoryEstimate finish() {
    add_shared();
    const double mark = arena_.mark();
    std::vector<std::pair<double, double>> banks;  // bytes, how many
    for (const NativeChunk& chunk : chunks_of_stage(workload_, stage_)) {
      arena_.rewind(mark);  // one chunk works at a time
      banks.emplace_back(add_chunk(chunk), chunk.banks);
    }
    arena_.seek_end();
    for (const auto& [bytes, count] : banks) arena_.reserve(&MemoryEstimate::activations, bytes * count);
    for (int i = 0; i < 2; ++i) workspace(stream_tokens_ * hidden_);
    arena_.reserve(&MemoryEstimate::buffers, sizeof(double));  // the loss
    add_states();
    const double read = std::max(1.0, workload_.micro_batches()) * tokens_;
    for (int i = 0; i < 2; ++i) indices(read);  // tokens and targets of a step
    return arena_.finish();
  }

 private:
  static constexpr double k_sum = 4;  // bytes of what is summed, of masters and moments: fp32

  void indices(double count) { arena_.reserve(&MemoryEstimate::buffers, count * sizeof(int32_t)); }
  void workspace(double count) { arena_.reserve(&MemoryEstimate::buffers, count * element_); }
  void keep(NativeArena& where, double count, double bytes) {
    where.reserve(&MemoryEstimate::activations, count * bytes);
  }

  void add_context_exchange() {
    if (layout_.context == 1) return;
    const double whole = static_cast<double>(layout_.micro_batch * workload_.sequence_length) *
                         (row_width_ - query_width_);  // keys and values of whole sequences
    workspace(std::floor(whole / static_cast<double>(layout_.context)));
    for (int i = 0; i < 3; ++i) workspace(whole);
  }

  // Of all layers, because one works at a time.
  void add_shared() {
    add_context_exchange();
    if (model_.position == PositionKind::rope) {
      const double angles =
          tokens_ / static_cast<double>(layout_.micro_batch) * std::floor(static_cast<double>(model_.head_dim) / 2);
      for (int i = 0; i < 2; ++i) arena_.reserve(&MemoryEstimate::buffers, angles * k_sum);
    }
    workspace(tokens_ * row_width_);
    workspace(tokens_ * query_width_);
    workspace(tokens_ * up_);
    workspace(tokens_ * inner_);
    for (int i = 0; splits_stream_ && i < 2; ++i) workspace(tokens_ * hidden_);
    for (int i = 0; i < 2; ++i) workspace(stream_tokens_ * hidden_);
    if (model_.position == PositionKind::learned) indices(stream_tokens_);
  }

  // Bytes of one micro-batch's bank.
  double add_chunk(const NativeChunk& chunk) {
    NativeArena kept;
    const double stream = stream_tokens_ * hidden_;
    if (chunk.embeds || (chunk.classifies && model_.tied_embeddings)) {
      add_unit({vocabulary_ * hidden_});
      indices(tokens_);
    }
    if (chunk.embeds && model_.position == PositionKind::learned) {
      add_unit({static_cast<double>(model_.max_position_embeddings) * hidden_});
      workspace(stream);
    }
    keep(kept, stream, element_);
    const double mark = arena_.mark();
    for (int64_t layer = 0; layer < chunk.layers; ++layer) {
      arena_.rewind(mark);
      add_block_weights();
      if (layer > 0) keep(kept, stream, element_);
      add_block(layout_.recompute == Recompute::full ? arena_ : kept);
    }
    arena_.seek_end();
    keep(kept, stream, element_);
    if (chunk.classifies) add_head(kept);
    return kept.total();
  }

  // Norm outputs and the MLP's inner rows are cheap to compute again.
  NativeArena& cheap(NativeArena& kept) { return layout_.recompute == Recompute::selective ? arena_ : kept; }

  void add_norm(NativeArena& kept) {
    keep(cheap(kept), stream_tokens_ * hidden_, element_);
    keep(kept, stream_tokens_, k_sum);
    if (model_.norm != NormKind::rms) keep(kept, stream_tokens_, k_sum);
  }

  // Copies of input, weight and output's gradient that are rounded to 8 bits. For a GPU's own units: both ways round,
  // with scales, which are kept but for the gradient's.
  void add_rounded(NativeArena& kept, double inputs, double outputs) {
    if (workload_.precision != PlanPrecision::fp8) return;
    const bool by_units =
        workload_.on_gpu && suits_fp8_units(tokens_) && suits_fp8_units(inputs) && suits_fp8_units(outputs);
    const double input = tokens_ * inputs, weight = outputs * inputs, gradient = tokens_ * outputs;
    if (!by_units) {
      for (const double count : {input, weight, gradient}) workspace(count);
      return;
    }
    constexpr double k_scale = 3 * sizeof(float);
    const auto both_ways = [&](double count) {
      for (int i = 0; i < 2; ++i) arena_.reserve(&MemoryEstimate::buffers, count);
    };
    for (const double count : {input, weight}) {
      keep(kept, 1, k_scale);
      both_ways(count);
    }
    arena_.reserve(&MemoryEstimate::buffers, k_scale);
    both_ways(gradient);
  }
  static bool suits_fp8_units(double size) {
    constexpr double k_divisor = 16;
    return std::fmod(size, k_divisor) == 0;
  }

  void add_block(NativeArena& kept) {
    add_norm(kept);
    add_rounded(kept, hidden_, row_width_);
    add_rounded(kept, query_width_, hidden_);
    keep(kept, tokens_ * row_width_, element_);
    keep(kept, tokens_ * query_width_, element_);
    keep(kept, tokens_ * query_heads_, k_sum);
    if (model_.qk_norm) {
      keep(kept, tokens_ * row_width_, element_);
      keep(kept, tokens_ * query_heads_, k_sum);
      keep(kept, tokens_ * key_heads_, k_sum);
    }
    keep(kept, stream_tokens_ * hidden_, element_);
    add_norm(kept);
    add_rounded(kept, hidden_, up_);
    add_rounded(kept, inner_, hidden_);
    keep(kept, tokens_ * up_, element_);
    keep(cheap(kept), tokens_ * inner_, element_);
  }

  // Rows of scores that exist at a time: the largest divisor of the tokens within 56 Mi scores of the whole vocabulary,
  // 512 Mi on a GPU.
  double score_rows() const {
    const int64_t most_scores = int64_t{workload_.on_gpu ? 512 : 56} << 20;
    const auto tokens = std::max<int64_t>(1, static_cast<int64_t>(tokens_));
    int64_t rows = std::clamp<int64_t>(most_scores / std::max<int64_t>(1, model_.vocab_size), 1, tokens);
    while (tokens % rows != 0) --rows;
    return static_cast<double>(rows);
  }

  void add_head(NativeArena& kept) {
    std::vector<double> weights = norm_weights();
    if (!model_.tied_embeddings) weights.push_back(vocabulary_ * hidden_);
    add_unit(weights);
    add_norm(kept);
    const double rows = score_rows();
    constexpr double k_row_step = 64;  // scores: rows begin aligned
    arena_.reserve(&MemoryEstimate::logits, rows * round_to(vocabulary_, k_row_step) * k_sum);
    arena_.reserve(&MemoryEstimate::logits, rows * k_sum);
    if (layout_.tensor > 1)
      for (const double each : {rows, rows, rows, 2 * rows}) arena_.reserve(&MemoryEstimate::logits, each * k_sum);
    keep(kept, stream_tokens_ * hidden_, element_);
    workspace(stream_tokens_ * hidden_);
  }

  std::vector<double> norm_weights() const {
    return model_.norm == NormKind::rms ? std::vector{hidden_} : std::vector{hidden_, hidden_};
  }

  void add_block_weights() {
    std::vector<double> weights = norm_weights();
    const auto head_dim = static_cast<double>(model_.head_dim);
    weights.push_back(row_width_ * hidden_);
    if (model_.qkv_bias || model_.linear_bias) weights.push_back(row_width_);
    if (model_.qk_norm) weights.insert(weights.end(), 2, head_dim);
    weights.push_back(query_width_ * hidden_);
    for (const double each : norm_weights()) weights.push_back(each);
    weights.push_back(up_ * hidden_);
    weights.push_back(inner_ * hidden_);
    if (model_.linear_bias) weights.insert(weights.end(), {hidden_, up_, hidden_});
    add_unit(weights);
  }

  // Weights that are gathered and reduced together. Each begins at a multiple of 64 elements, and all of them fill
  // equal shares of the data-parallel ranks that do too.
  void add_unit(const std::vector<double>& weights) {
    constexpr double k_grain = 64;
    double size = 0;
    for (const double each : weights) size += round_to(each, k_grain);
    size = round_to(size, k_grain * data_ranks_);
    elements_ += size;
    largest_unit_ = std::max(largest_unit_, size);
  }

  bool shares(Sharding from) const { return layout_.sharding >= from && data_ranks_ > 1; }

  void add_states() {
    using M = MemoryEstimate;
    const double owned = layout_.sharding == Sharding::none ? elements_ : elements_ / data_ranks_;
    arena_.reserve(&M::weights, (shares(Sharding::weights) ? owned : elements_) * element_);
    arena_.reserve(&M::gradients, (shares(Sharding::gradients) ? owned : elements_) * k_sum);
    if (shares(Sharding::weights)) arena_.reserve(&M::gathered, 3 * largest_unit_ * element_);
    if (shares(Sharding::gradients)) {
      arena_.reserve(&M::gathered, 2 * largest_unit_ * k_sum);
      arena_.reserve(&M::gathered, 2 * largest_unit_ / data_ranks_ * k_sum);
    }
    if (workload_.precision != PlanPrecision::fp32 && workload_.keeps_masters)
      arena_.reserve(&M::master_weights, owned * k_sum);
    for (int i = 0; i < 2; ++i) arena_.reserve(&M::moments, owned * workload_.moment_bytes);
  }

  const Workload& workload_;
  const ModelSpec& model_;
  const Layout& layout_;
  int64_t stage_;
  bool splits_stream_ = false;
  double tokens_ = 0, stream_tokens_ = 0;
  double hidden_ = 0, query_heads_ = 0, key_heads_ = 0, query_width_ = 0, row_width_ = 0, inner_ = 0, up_ = 0;
  double vocabulary_ = 0, element_ = 0, data_ranks_ = 1;
  double elements_ = 0, largest_unit_ = 0;
  NativeArena arena_;
};

}  // namespace

MemoryEstimate plan_native_stage(const Workload& workload, int64_t stage) {
  CHECK(workload.precision != PlanPrecision::fp4);
  return NativePlan(workload, stage).finish();
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

}  // namespace tprimat
