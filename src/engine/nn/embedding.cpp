#include "nn/embedding.h"

#include "base/check.h"
#include "nn/attention.h"

namespace tprimat::engine {
namespace {

std::vector<int32_t> positions_of_stream(const Plan& plan) {
  const Sharing& sharing = plan.sharing;
  const std::vector<int64_t> positions =
      local_positions(plan.batch.sequence_length, sharing.context_rank, sharing.context_size);
  const int64_t first = sharing.sequence_parallel ? sharing.tensor_rank * plan.stream_tokens() : 0;
  std::vector<int32_t> result(static_cast<size_t>(plan.stream_tokens()));
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<int32_t>(positions[(static_cast<size_t>(first) + i) % positions.size()]);
  return result;
}

int64_t add_positions(const ModelSpec& model, const Plan& plan, const ElementRange& planned) {
  Parameter parameter{"positions.weight", Shard::whole(model.max_position_embeddings, model.hidden_size), 0.0,
                      k_init_stddev, true};
  parameter.counts_in_norm = plan.sharing.tensor_rank == 0;
  parameter.partial_gradient = plan.sharing.sequence_parallel;
  return plan.parameters.add(parameter, planned);
}

}  // namespace

template <class T>
Embedding<T>::Embedding(const ModelSpec& model, const Plan& plan, const EmbeddingBuffers& buffers,
                        const ChunkShape& shape)
    : tokens_(plan.tokens()),
      hidden_(model.hidden_size),
      vocabulary_(local_vocabulary(model, plan.sharing)),
      has_head_(shape.classifies && model.tied_embeddings),
      own_tokens_(buffers.own_tokens) {
  Parameter parameter{"embedding.weight", output_shard({vocabulary_}, model.vocab_size, hidden_), 0.0, k_init_stddev,
                      true};
  parameter.counts_in_norm = shape.embeds;
  parameter.is_written_first = has_head_;
  weight_ = plan.parameters.add(parameter, buffers.weight);
}

template <class T>
const int32_t* Embedding<T>::own_tokens(const Pass<T>& pass, const int32_t* tokens) const {
  int32_t* const own = pass.at(own_tokens_);
  pass.ops.own_rows(tokens_, tokens, vocabulary_.first, vocabulary_.count, own);
  return own;
}

template <class T>
void Embedding<T>::forward(const Pass<T>& pass, const TensorRegion<T>& region, const int32_t* tokens, T* stream) const {
  const OpTimer timer(pass.clock, "embedding forward", memory_work<T>(tokens_, hidden_, 2));
  pass.ops.embedding_forward({tokens_, hidden_}, own_tokens(pass, tokens), pass.weight(weight_),
                             region.partial(pass, stream));
  region.leave(pass, stream);
}

template <class T>
void Embedding<T>::backward(const Pass<T>& pass, const TensorRegion<T>& region, const int32_t* tokens,
                            const T* dstream) const {
  CHECK(!has_head_ || pass.adds_to_gradients());  // the head has written it
  const OpTimer timer(pass.clock, "embedding backward",
                      memory_work<T>(tokens_, hidden_, 1 + 2.0 * sizeof(Accum<T>) / sizeof(T)));
  pass.add_embedding_gradient({tokens_, hidden_, vocabulary_.count}, own_tokens(pass, tokens),
                              region.enter(pass, dstream), weight_);
}

StreamPositions::StreamPositions(const ModelSpec& model, const Plan& plan, const SharedBuffers& buffers)
    : slot(buffers.positions) {
  if (model.position == PositionKind::learned) values = positions_of_stream(plan);
}

template <class T>
Positions<T>::Positions(const ModelSpec& model, const Plan& plan, const PositionBuffers& buffers)
    : stream_tokens_(plan.stream_tokens()),
      hidden_(model.hidden_size),
      positions_(model.max_position_embeddings),
      weight_(add_positions(model, plan, buffers.weight)),
      rows_(buffers.rows) {}

template <class T>
void Positions<T>::forward(const Pass<T>& pass, const StreamPositions& positions, T* stream) const {
  const OpTimer timer(pass.clock, "embedding forward", memory_work<T>(stream_tokens_, hidden_, 4));
  pass.ops.embedding_forward({stream_tokens_, hidden_}, pass.at(positions.slot), pass.weight(weight_), pass.at(rows_));
  pass.ops.add(stream_tokens_ * hidden_, stream, pass.at(rows_), stream);
}

template <class T>
void Positions<T>::backward(const Pass<T>& pass, const StreamPositions& positions, const T* dstream) const {
  const OpTimer timer(pass.clock, "embedding backward",
                      memory_work<T>(stream_tokens_, hidden_, 1 + 2.0 * sizeof(Accum<T>) / sizeof(T)));
  pass.ops.embedding_backward({stream_tokens_, hidden_, positions_}, pass.at(positions.slot), dstream,
                              pass.gradient(weight_));
}

template class Embedding<float>;
template class Embedding<bf16>;
template class Embedding<f16>;
template class Embedding<double>;
template class Positions<float>;
template class Positions<bf16>;
template class Positions<f16>;
template class Positions<double>;

}  // namespace tprimat::engine
