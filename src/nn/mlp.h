#pragma once

#include <string>

#include "nn/linear.h"

namespace tprimat {

// Buffers that all layers share, because only one layer works at a time.
template <class T>
struct MlpShared {
  MlpShared(const ModelSpec& model, const Plan& plan);
  Slot<T> dup, dinner;
};

// SwiGLU: gate and up in one product, silu(gate)·up, down. GELU: up, gelu, down.
template <class T>
class Mlp {
 public:
  Mlp(const ModelSpec& model, const Plan& plan, const std::string& name);

  // x, y: tokens×hidden; y without the output's bias, which joins when all ranks' parts are summed.
  void forward(const Pass<T>& pass, const T* x, T* y) const;
  void backward(const Pass<T>& pass, const MlpShared<T>& shared, const T* x, const T* dy, T* dx) const;
  const Linear<T>& output() const { return down_; }

 private:
  void activate(const Pass<T>& pass) const;
  void activate_backward(const Pass<T>& pass, const T* dinner, T* dup) const;

  MlpKind kind_;
  int64_t rows_, width_;
  Linear<T> up_;  // gate and up together where the MLP is gated
  Linear<T> down_;
  Slot<T> up_values_, inner_;
  bool inner_is_kept_;
};

}  // namespace tprimat
