#pragma once

#include <string>

#include "nn/linear.h"

namespace tprimat::engine {

// SwiGLU: gate and up in one product, silu(gate)·up, down. GELU: up, gelu, down. Where a device fuses the activation,
// it takes place in the products of up (forward) and down (backward), unless their inputs are rounded to fp8.
template <class T>
class Mlp {
 public:
  Mlp(const ModelSpec& model, const Plan& plan, const MlpBuffers& buffers, const std::string& name);

  // x, y: tokens×hidden; y without the output's bias, which joins when all ranks' parts are summed.
  void forward(const Pass<T>& pass, const T* x, T* y) const;
  void backward(const Pass<T>& pass, const SharedBuffers& shared, const T* x, const T* dy, T* dx) const;
  const Linear<T>& output() const { return down_; }

 private:
  bool fuses_activation(const Pass<T>& pass) const;
  bool keeps_slopes(const Pass<T>& pass) const;
  MatrixView<T> inner(const Pass<T>& pass) const;
  const T* bias_to_come(const Pass<T>& pass) const;
  void activate(const Pass<T>& pass) const;
  void activate_backward(const Pass<T>& pass, const T* dinner, T* dup) const;

  MlpKind kind_;
  int64_t rows_, width_;
  Linear<T> up_;  // gate and up together where the MLP is gated
  Linear<T> down_;
  MlpBuffers buffers_;
  bool inner_is_kept_;
};

}  // namespace tprimat::engine
