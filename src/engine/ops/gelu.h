#pragma once

#include <cstdint>

#include "device/element.h"

namespace tprimat::engine {

// Gaussian error linear unit in its tanh form (Hendrycks & Gimpel, arXiv 1606.08415, section 2; "gelu_new" of GPT-2):
// gelu(z) = z/2 · (1 + tanh(√(2/π)·(z + 0.044715·z³))).
struct GeluShape {
  int64_t rows = 0;   // tokens
  int64_t width = 0;  // inner width of the MLP
};

template <class T>
struct BiasGeluGradient {
  const T* x;       // as in the forward pass, before the bias
  const T* bias;    // width, or null
  const T* dy;      // rows×width
  T* dx;            // rows×width, overwritten; may be dy or x
  Accum<T>* dbias;  // width, added to; null: not wanted
};

template <class T>
struct GeluOps {
  // y[r,c] = gelu(x[r,c] + bias[c]).  x, y: rows×width; bias: width, or null for none; y may be x.
  void (*bias_gelu_forward)(const GeluShape&, const T* x, const T* bias, T* y);
  // dx[r,c] = dy[r,c] · gelu'(x[r,c] + bias[c]);   dbias[c] += Σ_r dx[r,c], before dx is rounded to T
  void (*bias_gelu_backward)(const GeluShape&, const BiasGeluGradient<T>&);
};

}  // namespace tprimat::engine
