#pragma once

#include <vector>

#include "nn/tensor_region.h"

namespace tprimat::engine {

// Token embedding, its rows dealt to the tensor-parallel ranks.
template <class T>
class Embedding {
 public:
  // The weight goes into the unit begun last, which it has for itself. The copy that a tied head uses on the last
  // pipeline stage does not count in the gradient's norm. Where the chunk classifies, the tied head works with this
  // copy too, before each backward pass of the embedding.
  Embedding(const ModelSpec& model, const Plan& plan, const EmbeddingBuffers& buffers, const ChunkShape& shape);

  int64_t weight() const { return weight_; }
  // tokens: all tokens of the tensor-parallel group; stream: stream_tokens×hidden.
  void forward(const Pass<T>& pass, const TensorRegion<T>& region, const int32_t* tokens, T* stream) const;
  void backward(const Pass<T>& pass, const TensorRegion<T>& region, const int32_t* tokens, const T* dstream) const;

 private:
  const int32_t* own_tokens(const Pass<T>& pass, const int32_t* tokens) const;

  int64_t tokens_, hidden_;
  RowRange vocabulary_;
  bool has_head_;
  int64_t weight_;
  Slot<int32_t> own_tokens_;  // row of each token among the own rows, −1 for another rank's
};

// The positions of this rank's rows of the stream, where the model has learned ones.
struct StreamPositions {
  StreamPositions(const ModelSpec& model, const Plan& plan, const SharedBuffers& buffers);
  // Once, after the arena exists.
  template <class T>
  void prepare(const Pass<T>& pass) const {
    if (!values.empty()) pass.device.upload(pass.at(slot), values.data(), values.size() * sizeof(int32_t));
  }
  std::vector<int32_t> values;
  Slot<int32_t> slot;
};

// Learned positions, added to the stream.
template <class T>
class Positions {
 public:
  Positions(const ModelSpec& model, const Plan& plan, const PositionBuffers& buffers);
  void forward(const Pass<T>& pass, const StreamPositions& positions, T* stream) const;
  void backward(const Pass<T>& pass, const StreamPositions& positions, const T* dstream) const;

 private:
  int64_t stream_tokens_, hidden_, positions_;
  int64_t weight_;
  Slot<Element> rows_;
};

}  // namespace tprimat::engine
