#pragma once

#include <optional>
#include <string>

#include "nn/pass.h"

namespace tprimat {

struct LinearShape {
  int64_t inputs = 0;
  int64_t outputs = 0;
  bool bias = false;
  double init_stddev = 0.02;
};

// y = x·Wᵀ + b.  W: outputs×inputs.
template <class T>
class Linear {
 public:
  Linear(const Plan& plan, const std::string& name, const LinearShape& shape);

  // x: rows×inputs; y: rows×outputs.
  void forward(const Pass<T>& pass, int64_t rows, const T* x, T* y) const;
  // Adds to the gradients of W and b, and overwrites dx: rows×inputs.
  void backward(const Pass<T>& pass, int64_t rows, const T* x, const T* dy, T* dx) const;

 private:
  LinearShape shape_;
  int64_t weight_;
  std::optional<int64_t> bias_;
};

}  // namespace tprimat
