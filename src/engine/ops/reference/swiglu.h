#pragma once

#include <cmath>

#include "ops/swiglu.h"

namespace tprimat::engine::reference {

template <class T>
void swiglu_forward(const SwigluShape& shape, const T* gate_up, T* y) {
  using A = Accum<T>;
  for (int64_t r = 0; r < shape.rows; ++r) {
    const T *gate = gate_up + r * 2 * shape.width, *up = gate + shape.width;
    for (int64_t c = 0; c < shape.width; ++c) {
      const A z = widen(gate[c]);
      y[r * shape.width + c] = narrow<T>(z / (A(1) + std::exp(-z)) * widen(up[c]));
    }
  }
}

template <class T>
void swiglu_backward(const SwigluShape& shape, const T* gate_up, const T* dy, T* dgate_up) {
  using A = Accum<T>;
  for (int64_t r = 0; r < shape.rows; ++r) {
    const int64_t at = r * 2 * shape.width;
    for (int64_t c = 0; c < shape.width; ++c) {
      const A z = widen(gate_up[at + c]), u = widen(gate_up[at + shape.width + c]), d = widen(dy[r * shape.width + c]);
      const A sigmoid = A(1) / (A(1) + std::exp(-z));
      dgate_up[at + c] = narrow<T>(d * u * sigmoid * (A(1) + z * (A(1) - sigmoid)));
      dgate_up[at + shape.width + c] = narrow<T>(d * z * sigmoid);
    }
  }
}

}  // namespace tprimat::engine::reference
