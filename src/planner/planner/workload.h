#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/families.h"
#include "planner/machine.h"
#include "spec/model_catalogue.h"
#include "spec/pipeline_layout.h"
#include "spec/pipeline_schedule.h"
#include "spec/train_spec.h"

namespace tprimat::planner {

// What data-parallel ranks split among them: ZeRO stages 1 to 3 (arXiv 1910.02054); weights is also fully sharded data
// parallelism.
enum class Sharding { none, optimizer, gradients, weights };
constexpr auto enum_table(Sharding) {
  return std::to_array<std::pair<Sharding, std::string_view>>({{Sharding::none, "none"},
                                                               {Sharding::optimizer, "zero1"},
                                                               {Sharding::gradients, "zero2"},
                                                               {Sharding::weights, "zero3"},
                                                               {Sharding::weights, "fsdp"}});
}

// Bytes of an activation, and of a weight as products use it and ranks exchange it.
inline constexpr double k_half_bytes = 2;

// What a program launches in CUDA graphs: nothing, parts of each layer, or whole steps.
enum class Graphs { none, parts, whole };

// How a training is laid out over GPUs. num_gpus = tensor x context x pipeline x data.
struct Layout {
  int64_t tensor = 1;
  int64_t context = 1;
  int64_t pipeline = 1;
  int64_t chunks = 1;           // virtual stages per rank (interleaved schedule)
  bool ends_as_layers = false;  // the embedding and the loss count as layers of the first and last stage
  bool delays_weights = false;  // zero-bubble schedule: gradients of weights fill the waiting (arXiv 2401.10241)
  int64_t data = 1;
  int64_t expert = 1, expert_tensor = 1;  // EP and ETP, of the tensor x context x data ranks of a stage
  int64_t micro_batch = 1;                // sequences
  Sharding sharding = Sharding::none;
  Recompute recompute = Recompute::none;
  bool sequence_parallel = true;  // with tensor parallelism: what lies between its regions is split too

  int64_t num_gpus() const { return tensor * context * pipeline * data; }
  bool operator==(const Layout&) const = default;
};

// The layout as configurations state it.
inline ParallelSpec parallel_spec(const Layout& layout) {
  ParallelSpec spec;
  spec.tensor = layout.tensor, spec.pipeline = layout.pipeline, spec.virtual_pipeline = layout.chunks;
  spec.data = layout.data, spec.context = layout.context;
  spec.sequence_parallel = layout.sequence_parallel && layout.tensor > 1;
  spec.ends_as_layers = layout.ends_as_layers;
  spec.zero_stage = static_cast<int64_t>(layout.sharding);
  if (layout.expert > 1) spec.expert = layout.expert;
  if (layout.expert_tensor > 1) spec.expert_tensor = layout.expert_tensor;
  return spec;
}

// One training step to predict.
struct Workload {
  ModelSpec shape;
  int64_t sequence_length = 0;
  int64_t global_batch = 0;  // sequences per step
  Layout layout;
  PlanPrecision precision = PlanPrecision::bf16;
  bool keeps_masters = true;        // weights in 16 bits have a copy in fp32
  double moment_bytes = 4;          // of each of Adam's two moments
  Offload offload = Offload::none;  // what the host's memory keeps
  bool on_gpu = false;              // our own trainer: it plans other buffers there
  const Family* family = nullptr;   // the program that trains; see planner/families.h
  std::string release;              // of the program, where the parameters know one
  bool asynchronous_tensor = true;  // tensor-parallel exchanges may hide behind products, where the program can
  bool scaled_by_row = false;       // FP8 with one scale per row
  bool scaled_by_block = false;     // FP8 with one scale per block of 32 (MX)
  bool plain_loss = false;          // the loss is a chain of kernels over fp32 scores, not a fused one
  bool narrow_attention = false;    // the attention core's products run in FP8 too
  bool compiled = true;       // element-wise kernels are fused by a compiler, where the program leaves it the choice
  bool repeats_core = false;  // `recompute` selective repeats the attention core, whatever else the program can
  std::optional<Routing> routing = {};        // of a sparse model; absent: not known
  std::optional<Dispatcher> dispatcher = {};  // absent: the program's usual one
  bool overlaps_experts = false;              // exchanges of tokens hide behind the computing of other micro-batches
  Graphs graphs = Graphs::none;
  // Copies of tokens that the experts of the fullest rank take, over the mean; 0: not stated, then 1 but for learned
  // routing.
  double expert_load = 0;
  double weight_bytes =
      k_half_bytes;              // of a weight as products use it; FP8 alone: 1, and 1 more where it is kept transposed
  double offloaded_moments = 0;  // share of them that the host's memory keeps
  double updated_bytes = k_half_bytes;  // of an updated weight as ranks of a sharded optimizer gather it
  double gradient_bytes = 0;            // in which gradients are summed; 0: as the program does it
  bool stores_narrow = false;           // the inputs of the MLP's activation function are kept in 8 bits
  bool compiled_loss = true;            // the loss makes no copies of the scores (torchtitan since 2025)
  bool trains_adapters = false;  // low-rank adapters (LoRA) alone: no gradients and states of the model's weights
  double document_length = 0;    // mean tokens of the documents of a packed sequence, which do not see each other; 0:
                                 // one document
  std::vector<int64_t> layers_of_places = {};  // explicit cut: layers of each chunk, place = chunk x PP + stage
  // Selective: of what a program that chooses layers repeats; with `recomputed_modules` of the products of a mean
  // layer's forward pass. Full: of the layers.
  double recomputed_share = 1;
  std::vector<RecomputedModule> recomputed_modules = {};  // named ones; empty: what the program usually selects

  // Of a gradient as ranks exchange it.
  double summed_bytes() const {
    if (gradient_bytes > 0) return gradient_bytes;
    return family->fp32_gradients ? 4 : k_half_bytes;
  }

  // Layers of the chunk at a place of the pipeline, and of all chunks of a rank.
  int64_t chunk_layers(int64_t place) const {
    if (!layers_of_places.empty()) return layers_of_places[static_cast<size_t>(place)];
    if (family->balances_ends) return balanced_layers(place + 1) - balanced_layers(place);
    if (family->fills_stages && !layout.ends_as_layers) return filled_layers(place + 1) - filled_layers(place);
    return split_layers(shape.num_layers, layout.pipeline * layout.chunks, layout.ends_as_layers, place).count;
  }
  int64_t stage_layers(int64_t stage) const {
    const int64_t ends = layout.ends_as_layers ? 1 : 0, units = shape.num_layers + 2 * ends;
    if (stages_are_alike())
      return units / layout.pipeline - (stage == 0 ? ends : 0) - (stage == layout.pipeline - 1 ? ends : 0);
    int64_t sum = 0;
    for (int64_t chunk = 0; chunk < layout.chunks; ++chunk) sum += chunk_layers(chunk * layout.pipeline + stage);
    return sum;
  }

  // Layers of the first so many stages of DeepSpeed, which fills each stage before it begins the next
  // (ds_utils.partition_balanced).
  int64_t filled_layers(int64_t stages) const {
    const int64_t layers = shape.num_layers;
    return std::min(layers, stages * ((layers + layout.pipeline - 1) / layout.pipeline));
  }
  // Layers of the first so many stages of nanotron, which begins a new stage when the products of the blocks so far are
  // more than the stages so far should have.
  int64_t balanced_layers(int64_t stages) const {
    const ModelSpec& m = shape;
    if (stages == 0 || stages == layout.pipeline) return stages == 0 ? 0 : m.num_layers;
    const double head = static_cast<double>(m.vocab_size) /
                        static_cast<double>(4 * m.num_attention_heads * m.head_dim + 3 * m.ffn_hidden_size);
    const double due =
        (static_cast<double>(m.num_layers) + head) * static_cast<double>(stages) / static_cast<double>(layout.pipeline);
    return std::min(m.num_layers, static_cast<int64_t>(due) + 1);
  }
  // All stages but the first and the last are the same.
  bool stages_are_alike() const {
    if (!layers_of_places.empty()) return false;
    if (shape.experts && (shape.experts->first_dense_layers > 0 || shape.experts->layer_interval > 1))
      return layout.pipeline == 1;
    if (family->balances_ends) return layout.pipeline == 1;
    return (shape.num_layers + (layout.ends_as_layers ? 2 : 0)) % (layout.pipeline * layout.chunks) == 0;
  }
  // One stage of every kind.
  template <class Visit>
  void visit_stages(const Visit& visit) const {
    const int64_t dense = shape.experts ? shape.experts->first_dense_layers : 0;  // at least a layer each
    const int64_t last = layout.pipeline - 1, between = stages_are_alike() ? std::min<int64_t>(last, 2 + dense) : last;
    for (int64_t stage = 0; stage < between; ++stage) visit(stage);
    visit(last);
  }

  // Where the layers lie that predict further tokens: beside the loss, or before it where an explicit cut leaves two
  // empty places ("Et*3|(tt|)*29,m|L").
  int64_t prediction_place() const {
    const int64_t last = layout.pipeline * layout.chunks - 1;
    const bool apart = last > 0 && !layers_of_places.empty() && layers_of_places.back() == 0 &&
                       layers_of_places[static_cast<size_t>(last - 1)] == 0;
    return apart ? last - 1 : last;
  }

  // Layers with experts among the first so many.
  int64_t expert_layers_before(int64_t layer) const {
    if (!shape.experts || layer <= shape.experts->first_dense_layers) return 0;
    return shape.experts->layers(layer);
  }

  bool selects_operators() const {
    return layout.recompute == Recompute::selective && family->operator_recompute && !repeats_core;
  }

  // Micro-batches that a pipeline takes per step, at least one. May be a fraction where a table's figures do not
  // divide.
  double micro_batches() const {
    return std::max(1.0, static_cast<double>(global_batch) / static_cast<double>(layout.data * layout.micro_batch));
  }
};

// The explicit cut as configurations state it; nothing where the program's rule cuts.
inline std::optional<std::string> stated_stages(const Workload& workload) {
  if (workload.layers_of_places.empty()) return std::nullopt;
  return write_pipeline_layout(workload.layers_of_places, workload.shape.prediction_layers.value_or(0));
}

// Why the planner does not predict a shape; empty for one that it does.
inline std::string unpredictable(const ModelSpec& shape) {
  return shape.mamba ? "a hybrid with state-space layers" : "";
}

}  // namespace tprimat::planner
