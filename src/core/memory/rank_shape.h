#pragma once

#include <cstdint>

#include "spec/train_spec.h"

namespace tprimat {

// Consecutive rows of a whole weight.
struct RowRange {
  int64_t first = 0, count = 0;
  bool operator==(const RowRange&) const = default;
};
// The part of `count` things from `first` on that rank `rank` of `size` gets; the last ranks get one more where size
// does not divide count.
RowRange share_of(int64_t first, int64_t count, int rank, int size);

// How the ranks of one stage share each layer.
struct Sharing {
  int tensor_rank = 0, tensor_size = 1;    // TP: each matrix is split
  bool sequence_parallel = false;          // SP: the residual stream is split over the tensor-parallel ranks
  int context_rank = 0, context_size = 1;  // CP: each sequence is split
};

// One micro batch as one tensor-parallel group sees it. Its tokens are sequences×local_length; each group of tensor
// ranks of a context-parallel layout has two pieces of every sequence (see ContextPieces).
struct BatchShape {
  int64_t sequences = 0;
  int64_t sequence_length = 0;  // whole
  int64_t local_length = 0;     // sequence_length / CP
  int64_t tokens() const { return sequences * local_length; }
};

// Logits of the whole vocabulary that exist at a time. Each chunk's product adds to the whole gradient of the head, so
// a few large chunks move less memory than many; on a GPU the products would be small for its multiprocessors besides.
inline constexpr int64_t k_max_logits_on_cpu = int64_t{112} << 20, k_max_logits_on_gpu = int64_t{512} << 20;

// The work of one rank.
struct RankShape {
  BatchShape batch;
  Sharing sharing;
  Recompute recompute = Recompute::none;
  bool rounds_to_fp8 = false;  // inputs of the blocks' products
  bool has_fp8_units = false;  // the device multiplies such numbers itself
  bool is_host = true;         // the device is the processor

  int64_t tokens() const { return batch.tokens(); }
  // Rows of the residual stream that live here.
  int64_t stream_tokens() const { return sharing.sequence_parallel ? tokens() / sharing.tensor_size : tokens(); }
};

// Inputs of a plan besides the specification.
struct TrainingDevice {
  bool is_host = true;
  bool has_fp8_units = false;
  bool in_double = false;  // of the reference engine, in any precision
};
RankShape rank_shape(const TrainSpec& spec, const RankPlace& place, const TrainingDevice& device);

// The part of the heads that a tensor-parallel rank has.
struct LocalHeads {
  RowRange query, key_value;  // heads
  bool shared_key_value;      // more ranks than key/value heads: several have the same
  int64_t head_dim;

  LocalHeads(const ModelSpec& model, const Sharing& sharing);
  int64_t query_width() const { return query.count * head_dim; }
  int64_t key_value_width() const { return key_value.count * head_dim; }
  int64_t row_width() const { return query_width() + 2 * key_value_width(); }  // one token: queries, keys, values
};

// The part of the MLP's inner width, and of the vocabulary's rows.
RowRange local_inner(const ModelSpec& model, const Sharing& sharing);
RowRange local_vocabulary(const ModelSpec& model, const Sharing& sharing);

// Consecutive layers of a model that one pipeline stage runs at a time. The whole model without pipeline parallelism.
struct ChunkShape {
  int64_t first_layer = 0, layers = 0;
  bool embeds = true;      // begins with the embedding
  bool classifies = true;  // ends with the head and the loss
};
// Chunk `chunk` (0 … VP−1) of stage `stage` (0 … PP−1): layers are dealt in turn, as Megatron-LM's interleaved schedule
// does (arXiv 2104.04473, section 2.2).
ChunkShape chunk_shape(const ModelSpec& model, const ParallelSpec& layout, int stage, int chunk);

}  // namespace tprimat
