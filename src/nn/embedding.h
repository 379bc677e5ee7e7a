#pragma once

#include <vector>

#include "nn/tensor_region.h"

namespace tprimat {

// The rows of a vocabulary that a tensor-parallel rank has.
RowRange local_vocabulary(const ModelSpec& model, const Sharing& sharing);

// Token embedding, its rows dealt to the tensor-parallel ranks.
template <class T>
class Embedding {
 public:
  // The weight goes into the unit begun last, which it has for itself. `is_first_copy` is false for the copy that a
  // tied head uses on the last pipeline stage: it does not count in the gradient's norm.
  Embedding(const ModelSpec& model, const Plan& plan, bool is_first_copy);

  int64_t weight() const { return weight_; }
  // tokens: all tokens of the tensor-parallel group; stream: stream_tokens×hidden.
  void forward(const Pass<T>& pass, const TensorRegion<T>& region, const int32_t* tokens, T* stream) const;
  void backward(const Pass<T>& pass, const TensorRegion<T>& region, const int32_t* tokens, const T* dstream) const;

 private:
  const int32_t* own_tokens(const int32_t* tokens) const;

  int64_t tokens_, hidden_;
  RowRange vocabulary_;
  int64_t weight_;
  mutable std::vector<int32_t> local_indices_;  // row of each token among the own rows, −1 for another rank's
};

// Learned positions, added to the stream.
template <class T>
class Positions {
 public:
  Positions(const ModelSpec& model, const Plan& plan);
  void forward(const Pass<T>& pass, T* stream) const;
  void backward(const Pass<T>& pass, const T* dstream) const;

 private:
  int64_t stream_tokens_, hidden_;
  int64_t weight_;
  std::vector<int32_t> positions_;  // of this rank's rows of the stream
  Slot<T> rows_;
};

}  // namespace tprimat
