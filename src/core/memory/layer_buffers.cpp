#include "memory/layer_buffers.h"

#include <algorithm>

namespace tprimat {
namespace {

struct LinearSize {
  int64_t outputs = 0, inputs = 0;
  bool bias = false;
};

bool suits_fp8_units(const LayerPlan& plan, const LinearSize& size) {
  constexpr int64_t k_divisor = 16;
  const auto divides = [](int64_t each) { return each % k_divisor == 0; };
  return plan.shape.has_fp8_units && divides(plan.shape.tokens()) && divides(size.inputs) && divides(size.outputs);
}

void plan_fp8(const LayerPlan& plan, const LinearSize& size, LinearBuffers& linear) {
  const int64_t tokens = plan.shape.tokens();
  const int64_t input = tokens * size.inputs, weight = size.outputs * size.inputs, gradient = tokens * size.outputs;
  ArenaPlan& workspace = plan.workspace;
  if (!suits_fp8_units(plan, size)) {
    const auto copy = [&](int64_t count) { return workspace.reserve<Element>(Component::workspace, count); };
    linear.copies = {copy(input), copy(weight), copy(gradient)};
    return;
  }
  constexpr int64_t k_scale_floats = 3;
  const auto tensor = [&](int64_t count, Slot<float> scale) -> Fp8Tensor {
    return {workspace.reserve<uint8_t>(Component::workspace, count),
            workspace.reserve<uint8_t>(Component::workspace, count), scale};
  };
  const auto kept_scale = [&] { return plan.kept.reserve<float>(Component::activations, k_scale_floats); };
  linear.units = {tensor(input, kept_scale()), tensor(weight, kept_scale()),
                  tensor(gradient, workspace.reserve<float>(Component::workspace, k_scale_floats))};
}

LinearBuffers plan_linear(const LayerPlan& plan, const LinearSize& size) {
  LinearBuffers linear;
  linear.weight = plan.weights.add(size.outputs * size.inputs);
  if (plan.shape.rounds_to_fp8) plan_fp8(plan, size, linear);
  if (size.bias) linear.bias = plan.weights.add(size.outputs);
  return linear;
}

NormBuffers plan_norm(const LayerPlan& plan) {
  NormBuffers norm;
  norm.weight = plan.weights.add(plan.model.hidden_size);
  norm.output = plan.cheap().reserve<Element>(Component::activations, plan.stream_elements());
  norm.rstd = plan.kept.reserve<Sum>(Component::activations, plan.shape.stream_tokens());
  if (plan.model.norm == NormKind::rms) return norm;
  norm.bias = plan.weights.add(plan.model.hidden_size);
  norm.mean = plan.kept.reserve<Sum>(Component::activations, plan.shape.stream_tokens());
  return norm;
}

AttentionBuffers plan_attention(const LayerPlan& plan) {
  const ModelSpec& model = plan.model;
  const LocalHeads heads(model, plan.shape.sharing);
  const int64_t tokens = plan.shape.tokens();
  const auto keep = [&](int64_t width) { return plan.kept.reserve<Element>(Component::activations, tokens * width); };
  const auto keep_sums = [&](int64_t each) { return plan.kept.reserve<Sum>(Component::activations, tokens * each); };
  AttentionBuffers attention;
  attention.qkv = plan_linear(plan, {heads.row_width(), model.hidden_size, model.qkv_bias || model.linear_bias});
  if (model.qk_norm) attention.query_norm = plan.weights.add(model.head_dim);
  if (model.qk_norm) attention.key_norm = plan.weights.add(model.head_dim);
  attention.out = plan_linear(plan, {model.hidden_size, heads.query_width(), model.linear_bias});
  attention.qkv_values = keep(heads.row_width());
  attention.context = keep(heads.query_width());
  attention.logsumexp = keep_sums(heads.query.count);
  if (!model.qk_norm) return attention;
  attention.normed = keep(heads.row_width());
  attention.query_rstd = keep_sums(heads.query.count);
  attention.key_rstd = keep_sums(heads.key_value.count);
  return attention;
}

int64_t up_outputs(const LayerPlan& plan) {
  return (plan.model.mlp == MlpKind::swiglu ? 2 : 1) * local_inner(plan.model, plan.shape.sharing).count;
}

MlpBuffers plan_mlp(const LayerPlan& plan) {
  const ModelSpec& model = plan.model;
  const int64_t tokens = plan.shape.tokens(), inner = local_inner(model, plan.shape.sharing).count;
  MlpBuffers mlp;
  mlp.up = plan_linear(plan, {up_outputs(plan), model.hidden_size, model.linear_bias});
  mlp.down = plan_linear(plan, {model.hidden_size, inner, model.linear_bias});
  mlp.up_values = plan.kept.reserve<Element>(Component::activations, tokens * up_outputs(plan));
  mlp.inner = plan.cheap().reserve<Element>(Component::activations, tokens * inner);
  return mlp;
}

BlockBuffers plan_block(const LayerPlan& plan, bool first) {
  BlockBuffers block;
  if (!first) block.input = plan.kept.reserve<Element>(Component::activations, plan.stream_elements());
  // With full recomputation everything but the block's input is shared by all blocks.
  const LayerPlan inner{plan.model, plan.shape, plan.weights, plan.workspace,
                        plan.shape.recompute == Recompute::full ? plan.workspace : plan.kept};
  block.attention_norm = plan_norm(inner);
  block.attention = plan_attention(inner);
  block.mid = inner.kept.reserve<Element>(Component::activations, plan.stream_elements());
  block.mlp_norm = plan_norm(inner);
  block.mlp = plan_mlp(inner);
  return block;
}

// All blocks share the buffers that a block does not keep for its backward pass.
std::vector<BlockBuffers> plan_blocks(const LayerPlan& plan, int64_t layers) {
  std::vector<BlockBuffers> blocks;
  blocks.reserve(static_cast<size_t>(layers));
  const size_t mark = plan.workspace.mark();
  for (int64_t layer = 0; layer < layers; ++layer) {
    plan.weights.begin_unit();
    plan.workspace.rewind(mark);
    blocks.push_back(plan_block(plan, layer == 0));
  }
  plan.workspace.seek_end();
  return blocks;
}

EmbeddingBuffers plan_embedding(const LayerPlan& plan) {
  plan.weights.begin_unit();
  const int64_t rows = local_vocabulary(plan.model, plan.shape.sharing).count;
  return {plan.weights.add(rows * plan.model.hidden_size),
          plan.workspace.reserve<int32_t>(Component::workspace, plan.shape.tokens())};
}

PositionBuffers plan_positions(const LayerPlan& plan) {
  plan.weights.begin_unit();
  return {plan.weights.add(plan.model.max_position_embeddings * plan.model.hidden_size),
          plan.workspace.reserve<Element>(Component::workspace, plan.stream_elements())};
}

// The largest divisor of `tokens` whose logits fit the budget, so that all chunks have the same shape.
int64_t chunk_rows(int64_t tokens, int64_t vocab, int64_t max_logits) {
  int64_t rows = std::clamp<int64_t>(max_logits / vocab, 1, tokens);
  while (tokens % rows != 0) --rows;
  return rows;
}

// Rows of logits, and the gradients that lie over them, are a multiple of 256 bytes apart whatever the vocabulary: the
// most that matrix libraries ask for, and whole cache lines. Otherwise GPT-2's 50257 would misalign three of four rows
// for the 16-byte loads of GPUs. Only where that is a multiple of 2 KB, whose rows would share a few sets of a
// processor's caches, do they lie one cache line further apart there.
int64_t logit_stride(int64_t vocabulary, bool is_host) {
  constexpr int64_t k_aligned = 64, k_alike = 512, k_line = 16;  // logits
  const int64_t stride = (vocabulary + k_aligned - 1) / k_aligned * k_aligned;
  return is_host && stride % k_alike == 0 ? stride + k_line : stride;
}

ClassifierBuffers plan_classifier(const LayerPlan& plan) {
  ClassifierBuffers classifier;
  const int64_t rows =
      chunk_rows(std::max<int64_t>(1, plan.shape.tokens()), std::max<int64_t>(1, plan.model.vocab_size),
                 plan.shape.is_host ? k_max_logits_on_cpu : k_max_logits_on_gpu);
  classifier.rows = rows;
  classifier.stride = logit_stride(local_vocabulary(plan.model, plan.shape.sharing).count, plan.shape.is_host);
  const auto sums = [&](int64_t count) { return plan.workspace.reserve<Sum>(Component::logits, count); };
  classifier.logits = sums(rows * classifier.stride);
  classifier.losses = sums(rows);
  if (plan.shape.sharing.tensor_size == 1) return classifier;
  classifier.own_targets = plan.workspace.reserve<int32_t>(Component::logits, rows);
  classifier.largest = sums(rows);
  classifier.whole_largest = sums(rows);
  classifier.sums = sums(2 * rows);
  return classifier;
}

HeadBuffers plan_head(const LayerPlan& plan) {
  HeadBuffers head;
  plan.weights.begin_unit();
  head.norm = plan_norm(plan);
  if (!plan.model.tied_embeddings)
    head.weight = plan.weights.add(local_vocabulary(plan.model, plan.shape.sharing).count * plan.model.hidden_size);
  head.classifier = plan_classifier(plan);
  head.gradient = plan.kept.reserve<Element>(Component::activations, plan.stream_elements());
  head.dnormed = plan.workspace.reserve<Element>(Component::workspace, plan.stream_elements());
  return head;
}

ContextBuffers plan_context(const LayerPlan& plan, int64_t width) {
  const BatchShape& batch = plan.shape.batch;
  if (plan.shape.sharing.context_size == 1) return {};
  const int64_t whole = batch.sequences * batch.sequence_length * width;
  const auto reserve = [&](int64_t count) { return plan.workspace.reserve<Element>(Component::workspace, count); };
  return {reserve(whole / plan.shape.sharing.context_size), reserve(whole), reserve(whole), reserve(whole)};
}

}  // namespace

ChunkBuffers plan_chunk(const LayerPlan& plan, const ChunkShape& shape) {
  ChunkBuffers chunk;
  const ModelSpec& model = plan.model;
  if (shape.embeds || (shape.classifies && model.tied_embeddings)) chunk.embedding = plan_embedding(plan);
  if (shape.embeds && model.position == PositionKind::learned) chunk.positions = plan_positions(plan);
  chunk.input = plan.kept.reserve<Element>(Component::activations, plan.stream_elements());
  chunk.blocks = plan_blocks(plan, shape.layers);
  chunk.output = plan.kept.reserve<Element>(Component::activations, plan.stream_elements());
  if (shape.classifies) chunk.head = plan_head(plan);
  return chunk;
}

SharedBuffers plan_shared(const LayerPlan& plan) {
  const ModelSpec& model = plan.model;
  const RankShape& shape = plan.shape;
  const LocalHeads heads(model, shape.sharing);
  const auto elements = [&](int64_t count) { return plan.workspace.reserve<Element>(Component::workspace, count); };
  const auto angles = [&] {
    return plan.workspace.reserve<Sum>(Component::workspace, shape.batch.local_length * (model.head_dim / 2));
  };
  SharedBuffers shared;
  shared.context = plan_context(plan, 2 * heads.key_value_width());
  if (model.position == PositionKind::rope) shared.cosine = angles(), shared.sine = angles();
  shared.dqkv = elements(shape.tokens() * heads.row_width());
  shared.dcontext = elements(shape.tokens() * heads.query_width());
  shared.dup = elements(shape.tokens() * up_outputs(plan));
  shared.dinner = elements(shape.tokens() * local_inner(model, shape.sharing).count);
  if (shape.sharing.sequence_parallel && shape.sharing.tensor_size > 1) {
    shared.gathered = elements(shape.tokens() * model.hidden_size);
    shared.partial = elements(shape.tokens() * model.hidden_size);
  }
  shared.attention_branch = elements(plan.stream_elements());
  shared.mlp_branch = elements(plan.stream_elements());
  if (model.position == PositionKind::learned)
    shared.positions = plan.workspace.reserve<int32_t>(Component::workspace, shape.stream_tokens());
  return shared;
}

}  // namespace tprimat
