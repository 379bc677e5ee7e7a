#pragma once

#include <string>

#include "nn/pass.h"

namespace tprimat::engine {

// RMSNorm or LayerNorm of the residual stream, whichever the model has.
template <class T>
class Norm {
 public:
  Norm(const ModelSpec& model, const Plan& plan, const NormBuffers& buffers, const std::string& name);

  // x: stream_tokens×hidden. Returns the normed rows, valid until the next forward pass of the same micro batch; with
  // selective recomputation until the next norm.
  const T* forward(const Pass<T>& pass, const T* x) const;
  // The same of sum = x + branch, which is kept in `sum`.
  const T* forward_sum(const Pass<T>& pass, const T* x, const T* branch, T* sum) const;
  // The normed rows once more, for the backward pass of what reads them; x as it was normed.
  const T* output_again(const Pass<T>& pass, const T* x) const;
  // Adds the gradient of x to dx.
  void backward(const Pass<T>& pass, const T* x, const T* dy, T* dx) const;

 private:
  NormKind kind_;
  int64_t rows_, cols_;
  double eps_;
  NormBuffers buffers_;
  int64_t weight_;
  int64_t bias_ = -1;
  bool output_is_kept_;
};

}  // namespace tprimat::engine
