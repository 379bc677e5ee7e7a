#include "nn/model_chunk.h"

#include <fmt/format.h>

#include "base/check.h"

namespace tprimat::engine {

std::vector<Problem> check_trainable(const ModelSpec& model, const std::string& where) {
  std::vector<Problem> problems;
  const auto refuse = [&](bool present, const std::string& what) {
    if (present)
      problems.push_back({"the native trainer does not support " + what, where,
                          "choose a dense Llama, Qwen, Mistral or GPT shape with even head sizes"});
  };
  for (const std::string& part : list_special_parts(model)) refuse(true, part);
  refuse(model.position == PositionKind::rope && model.head_dim % 2 != 0,
         "odd head sizes with rotary positions (head_dim)");
  return problems;
}

template <class T>
ModelChunk<T>::ModelChunk(const ModelSpec& model, const Plan& plan, const ChunkShape& shape,
                          const ChunkBuffers& buffers)
    : shape_(shape),
      elements_(plan.stream_tokens() * model.hidden_size),
      logits_(plan.tokens() * model.vocab_size),
      tied_(model.tied_embeddings),
      input_(buffers.input),
      output_(buffers.output) {
  CHECK(input_.count == elements_ && std::ssize(buffers.blocks) == shape.layers);
  if (buffers.embedding) {
    embedding_unit_ = plan.parameters.begin_unit("embedding");
    embedding_.emplace(model, plan, *buffers.embedding, shape);
  }
  if (buffers.positions) {
    position_unit_ = plan.parameters.begin_unit("positions");
    positions_.emplace(model, plan, *buffers.positions);
  }
  for (const BlockBuffers& block : buffers.blocks) {
    const std::string name = fmt::format("layers.{}", shape.first_layer + std::ssize(blocks_));
    block_units_.push_back(plan.parameters.begin_unit(name));
    blocks_.emplace_back(model, plan, block, name);
  }
  if (buffers.head) add_head(model, plan, *buffers.head);
}

template <class T>
void ModelChunk<T>::add_head(const ModelSpec& model, const Plan& plan, const HeadBuffers& buffers) {
  head_unit_ = plan.parameters.begin_unit("head");
  final_norm_.emplace(model, plan, buffers.norm, "final_norm");
  int64_t weight = tied_ ? embedding_->weight() : 0;
  if (buffers.weight) {
    Parameter head{"head.weight",
                   output_shard({local_vocabulary(model, plan.sharing)}, model.vocab_size, model.hidden_size), 0.0,
                   k_init_stddev, true};
    head.is_written_first = true;
    weight = plan.parameters.add(head, *buffers.weight);
  }
  classifier_.emplace(model, plan, buffers.classifier, weight);
  head_gradient_ = buffers.gradient;
  dnormed_ = buffers.dnormed;
}

template <class T>
void ModelChunk<T>::embed(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home,
                          const int32_t* tokens) const {
  const int first = block_units_.empty() ? head_unit_ : block_units_.front();
  const int after = positions_ ? position_unit_ : first;
  embedding_->forward(pass.with(home.open(embedding_unit_, after)), shared.blocks.region, tokens, pass.at(input_));
  home.close(embedding_unit_);
  if (!positions_) return;
  positions_->forward(pass.with(home.open(position_unit_, first)), shared.positions, pass.at(input_));
  home.close(position_unit_);
}

template <class T>
void ModelChunk<T>::embed_backward(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home,
                                   const int32_t* tokens, const T* dstream) const {
  if (positions_) {
    positions_->backward(pass.with(home.open_for_backward(position_unit_, embedding_unit_)), shared.positions, dstream);
    home.close_after_backward(position_unit_, true);
  }
  embedding_->backward(pass.with(home.open_for_backward(embedding_unit_, -1)), shared.blocks.region, tokens, dstream);
  home.close_after_backward(embedding_unit_, true);
}

template <class T>
Stream<T> ModelChunk<T>::run_layers(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home,
                                    const MicroBatch& batch) const {
  if (shape_.embeds) embed(pass, shared, home, batch.tokens);
  Stream<T> stream{pass.at(input_), nullptr};
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const int next = i + 1 < blocks_.size() ? block_units_[i + 1] : head_unit_;
    const OpLayer layer(pass.clock, shape_.first_layer + static_cast<int64_t>(i));
    stream = blocks_[i].forward(pass.with(home.open(block_units_[i], next)), shared.blocks, stream);
    home.close(block_units_[i]);
  }
  return stream;
}

template <class T>
const T* ModelChunk<T>::normalise(const Pass<T>& head, const Stream<T>& stream) const {
  return stream.branch ? final_norm_->forward_sum(head, stream.sum, stream.branch, head.at(output_))
                       : final_norm_->forward(head, stream.sum);
}

template <class T>
void ModelChunk<T>::classify(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home,
                             const Stream<T>& stream, const LossTargets& targets) const {
  const TensorRegion<T>& region = shared.blocks.region;
  const Pass<T> head = pass.with(home.open_for_backward(head_unit_, -1));
  const Pass<T> weights = tied_ ? pass.with(home.open_for_backward(embedding_unit_, -1)) : head;
  T *const output = pass.at(output_), *const dnormed = pass.at(dnormed_), *const dstream = pass.at(head_gradient_);
  const T* const normed = normalise(head, stream);
  classifier_->forward_backward(weights, region.enter(pass, normed), targets.tokens, targets.scale,
                                region.partial(pass, dnormed));
  region.leave(pass, dnormed);
  clear_gradient(pass, dstream);
  final_norm_->backward(head, stream.branch ? output : stream.sum, dnormed, dstream);
  if (tied_) home.close_after_backward(embedding_unit_, !shape_.embeds);
  home.close_after_backward(head_unit_, true);
}

template <class T>
void ModelChunk<T>::evaluate_head(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home,
                                  const Stream<T>& stream, const int32_t* targets) const {
  const Pass<T> head = pass.with(home.open(head_unit_, -1));
  const Pass<T> weights = tied_ ? pass.with(home.open(embedding_unit_, -1)) : head;
  const T* const normed = normalise(head, stream);
  classifier_->forward(weights, shared.blocks.region.enter(pass, normed), targets);
  if (tied_) home.close(embedding_unit_);
  home.close(head_unit_);
}

template <class T>
void ModelChunk<T>::clear_gradient(const Pass<T>& pass, T* dstream) const {
  const OpTimer timer(pass.clock, "stream copy backward", memory_work<T>(1, elements_, 1));
  pass.clear(elements_, dstream);
}

// Of the head, which made it in the forward pass.
template <class T>
void ModelChunk<T>::copy_gradient(const Pass<T>& pass, T* dstream) const {
  const OpTimer timer(pass.clock, "stream copy backward", memory_work<T>(1, elements_, 2));
  pass.copy(elements_, static_cast<const T*>(pass.at(head_gradient_)), dstream);
}

// A chunk without blocks, which has the embedding alone, hands on what it began with.
template <class T>
T* ModelChunk<T>::hand_on(const Pass<T>& pass, const Stream<T>& stream) const {
  const OpTimer timer(pass.clock, "output of the stage, forward", memory_work<T>(1, elements_, 3));
  if (stream.branch)
    pass.ops.add(elements_, stream.sum, stream.branch, pass.at(output_));
  else
    pass.copy(elements_, stream.sum, pass.at(output_));
  return pass.at(output_);
}

template <class T>
const T* ModelChunk<T>::forward(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home,
                                const MicroBatch& batch, double gradient_scale) const {
  const Stream<T> stream = run_layers(pass, shared, home, batch);
  if (!shape_.classifies) return hand_on(pass, stream);
  classify(pass, shared, home, stream, {batch.targets, gradient_scale});
  return nullptr;
}

template <class T>
const T* ModelChunk<T>::evaluate(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home,
                                 const MicroBatch& batch) const {
  const Stream<T> stream = run_layers(pass, shared, home, batch);
  if (!shape_.classifies) return hand_on(pass, stream);
  evaluate_head(pass, shared, home, stream, batch.targets);
  return nullptr;
}

template <class T>
void ModelChunk<T>::backward(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home,
                             const MicroBatch& batch, T* dstream) const {
  if (shape_.classifies) copy_gradient(pass, dstream);
  for (size_t i = blocks_.size(); i-- > 0;) {
    const int next = i > 0 ? block_units_[i - 1] : positions_ ? position_unit_ : shape_.embeds ? embedding_unit_ : -1;
    const OpLayer layer(pass.clock, shape_.first_layer + static_cast<int64_t>(i));
    blocks_[i].backward(pass.with(home.open_for_backward(block_units_[i], next)), shared.blocks, pass.at(input_),
                        dstream);
    home.close_after_backward(block_units_[i], true);
  }
  if (shape_.embeds) embed_backward(pass, shared, home, batch.tokens, dstream);
}

template <class T>
std::vector<Accum<T>> ModelChunk<T>::logits(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home,
                                            const MicroBatch& batch) const {
  CHECK(shape_.embeds && shape_.classifies);
  const Stream<T> stream = run_layers(pass, shared, home, batch);
  const Pass<T> head = pass.with(home.open(head_unit_, -1));
  const Pass<T> weights = tied_ ? pass.with(home.open(embedding_unit_, -1)) : head;
  const T* const normed = normalise(head, stream);
  std::vector<Accum<T>> logits(static_cast<size_t>(logits_));
  classifier_->find_logits(weights, normed, logits.data());
  if (tied_) home.close(embedding_unit_);
  home.close(head_unit_);
  return logits;
}

template class ModelChunk<float>;
template class ModelChunk<bf16>;
template class ModelChunk<f16>;
template class ModelChunk<double>;

}  // namespace tprimat::engine
