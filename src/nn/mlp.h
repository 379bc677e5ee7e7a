#pragma once

#include <string>

#include "nn/linear.h"
#include "ops/swiglu.h"
#include "spec/model_spec.h"

namespace tprimat {

// Buffers that all layers share, because only one layer works at a time.
template <class T>
struct MlpShared {
  MlpShared(const ModelSpec& model, const Plan& plan);
  Slot<T> dgate_up, dinner;
};

// SwiGLU MLP: gate and up in one product, silu(gate)·up, down.
template <class T>
class Mlp {
 public:
  Mlp(const ModelSpec& model, const Plan& plan, const std::string& name);

  // x, y: tokens×hidden.
  void forward(const Pass<T>& pass, const T* x, T* y) const;
  void backward(const Pass<T>& pass, const MlpShared<T>& shared, const T* x, const T* dy, T* dx) const;

 private:
  SwigluShape shape_;
  Linear<T> gate_up_;
  Linear<T> down_;
  Slot<T> gate_up_values_, inner_;
};

}  // namespace tprimat
