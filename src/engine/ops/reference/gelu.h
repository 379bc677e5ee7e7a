#pragma once

#include <cmath>
#include <numbers>

#include "ops/gelu.h"

namespace tprimat::engine::reference {

template <class A>
A gelu_argument(A z) {
  return std::sqrt(A(2) / std::numbers::pi_v<A>) * (z + A(0.044715) * z * z * z);
}

template <class A>
A gelu(A z) {
  return z / A(2) * (A(1) + std::tanh(gelu_argument(z)));
}

// d gelu / dz
template <class A>
A gelu_slope(A z) {
  const A t = std::tanh(gelu_argument(z));
  const A inner = std::sqrt(A(2) / std::numbers::pi_v<A>) * (A(1) + A(3 * 0.044715) * z * z);
  return (A(1) + t) / A(2) + z / A(2) * (A(1) - t * t) * inner;
}

template <class T>
void bias_gelu_forward(const GeluShape& shape, const T* x, const T* bias, T* y) {
  for (int64_t i = 0; i < shape.rows * shape.width; ++i)
    y[i] = narrow<T>(gelu(widen(x[i]) + (bias != nullptr ? widen(bias[i % shape.width]) : Accum<T>(0))));
}

template <class T>
void bias_gelu_backward(const GeluShape& shape, const BiasGeluGradient<T>& g) {
  for (int64_t i = 0; i < shape.rows * shape.width; ++i) {
    const int64_t c = i % shape.width;
    const Accum<T> z = widen(g.x[i]) + (g.bias != nullptr ? widen(g.bias[c]) : Accum<T>(0));
    const Accum<T> gradient = widen(g.dy[i]) * gelu_slope(z);
    if (g.dbias != nullptr) g.dbias[c] += gradient;
    g.dx[i] = narrow<T>(gradient);
  }
}

}  // namespace tprimat::engine::reference
