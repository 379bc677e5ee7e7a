#pragma once

#include <string>

#include "nn/pass.h"
#include "ops/rmsnorm.h"

namespace tprimat {

// RMSNorm of the residual stream; keeps its output, which the layer after it reads twice.
template <class T>
class Norm {
 public:
  Norm(const Plan& plan, const std::string& name, int64_t hidden_size, double eps);

  // x: tokens×hidden. Returns the normed stream, which stays valid until the next forward pass.
  const T* forward(const Pass<T>& pass, const T* x) const;
  const T* output(const Pass<T>& pass) const { return pass.arena.at(output_); }
  // Adds the gradient of x to dx.
  void backward(const Pass<T>& pass, const T* x, const T* dy, T* dx) const;

 private:
  RmsNormShape shape_;
  int64_t weight_;
  Slot<T> output_;
  Slot<Accum<T>> rstd_;
};

}  // namespace tprimat
