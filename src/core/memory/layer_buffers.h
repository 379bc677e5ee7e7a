#pragma once

#include <optional>
#include <vector>

#include "memory/arena_plan.h"
#include "memory/rank_shape.h"

namespace tprimat {

// The context of planning a layer: its shape, and the plans for its weights and buffers.
struct LayerPlan {
  const ModelSpec& model;
  const RankShape& shape;
  WeightPlan& weights;
  ArenaPlan& workspace;  // buffers that all micro batches and layers share
  ArenaPlan& kept;       // values that a layer's forward pass keeps for its backward pass

  int64_t stream_elements() const { return shape.stream_tokens() * model.hidden_size; }
  // For activations that are cheap to compute again.
  ArenaPlan& cheap() const { return shape.recompute == Recompute::selective ? workspace : kept; }
};

// Copies of a product's operands in 8 bits, for units that multiply such numbers: each both ways round, with its scale,
// what undoes that, and the greatest magnitude. The scales of input and weight are kept for the backward pass, which
// thus reads both once less.
struct Fp8Tensor {
  Slot<uint8_t> values, transposed;
  Slot<float> scale;
};
struct Fp8Tensors {
  Fp8Tensor input, weight, gradient;
};
// Copies rounded to 8 bits but kept as elements, where the device has no such units or they do not suit the sizes.
struct Fp8Copies {
  Slot<Element> input, weight, gradient;
};

struct LinearBuffers {
  ElementRange weight;
  std::optional<ElementRange> bias;
  std::optional<Fp8Copies> copies;
  std::optional<Fp8Tensors> units;
};

struct NormBuffers {
  ElementRange weight;
  std::optional<ElementRange> bias;
  Slot<Element> output;
  Slot<Sum> rstd, mean;
};

struct AttentionBuffers {
  LinearBuffers qkv, out;
  std::optional<ElementRange> query_norm, key_norm;
  Slot<Element> qkv_values, context, normed;
  Slot<Sum> logsumexp, query_rstd, key_rstd;
};

struct MlpBuffers {
  LinearBuffers up, down;
  Slot<Element> up_values, inner;
};

struct BlockBuffers {
  Slot<Element> input;  // none for the first of a chunk
  NormBuffers attention_norm;
  AttentionBuffers attention;
  Slot<Element> mid;
  NormBuffers mlp_norm;
  MlpBuffers mlp;
};

struct EmbeddingBuffers {
  ElementRange weight;
  Slot<int32_t> own_tokens;
};
struct PositionBuffers {
  ElementRange weight;
  Slot<Element> rows;
};

struct ClassifierBuffers {
  int64_t rows = 0;    // of logits, that exist at a time
  int64_t stride = 0;  // from one to the next, in values
  Slot<Sum> logits, losses;
  Slot<int32_t> own_targets;
  Slot<Sum> largest, whole_largest, sums;
};
struct HeadBuffers {
  NormBuffers norm;
  std::optional<ElementRange> weight;  // none where it is the embedding's
  ClassifierBuffers classifier;
  Slot<Element> gradient, dnormed;
};

struct ChunkBuffers {
  std::optional<EmbeddingBuffers> embedding;  // of the first chunk; of the last too where the head is tied
  std::optional<PositionBuffers> positions;
  Slot<Element> input;
  std::vector<BlockBuffers> blocks;
  Slot<Element> output;
  std::optional<HeadBuffers> head;
};
ChunkBuffers plan_chunk(const LayerPlan& plan, const ChunkShape& shape);

// Keys and values of whole sequences, and of the own part of them.
struct ContextBuffers {
  Slot<Element> packed, by_rank, by_sequence, gradient;
};
// Buffers that all layers share, because only one works at a time.
struct SharedBuffers {
  ContextBuffers context;
  Slot<Sum> cosine, sine;  // of rotary positions
  Slot<Element> dqkv, dcontext, dup, dinner;
  Slot<Element> gathered, partial;             // of sequence-parallel ranks
  Slot<Element> attention_branch, mlp_branch;  // the next addition to the residual stream
  Slot<int32_t> positions;                     // learned
};
SharedBuffers plan_shared(const LayerPlan& plan);

}  // namespace tprimat
