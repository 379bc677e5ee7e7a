#pragma once

#include <cmath>

#include "ops/layernorm.h"
#include "ops/reference/elementwise.h"

namespace tprimat::engine::reference {

template <class T>
void layernorm_forward(const LayerNormShape& shape, const T* x, const LayerNormWeights<T>& weights,
                       const LayerNormOutput<T>& output) {
  using A = Accum<T>;
  for (int64_t r = 0; r < shape.rows; ++r) {
    const T* row = x + r * shape.cols;
    A sum = 0, squares = 0;
    for (int64_t c = 0; c < shape.cols; ++c) sum += widen(row[c]);
    const A mean = sum / A(shape.cols);
    for (int64_t c = 0; c < shape.cols; ++c) squares += (widen(row[c]) - mean) * (widen(row[c]) - mean);
    const A rstd = A(1) / std::sqrt(squares / A(shape.cols) + A(shape.eps));
    for (int64_t c = 0; c < shape.cols; ++c)
      output.y[r * shape.cols + c] =
          narrow<T>((widen(row[c]) - mean) * rstd * widen(weights.weight[c]) + widen(weights.bias[c]));
    output.mean[r] = mean;
    output.rstd[r] = rstd;
  }
}

template <class T>
void add_layernorm_forward(const LayerNormShape& shape, const ResidualSum<T>& residual,
                           const LayerNormWeights<T>& weights, const LayerNormOutput<T>& output) {
  reference::add(shape.rows * shape.cols, residual.a, residual.b, residual.sum);
  reference::layernorm_forward<T>(shape, residual.sum, weights, output);
}

template <class T>
void layernorm_backward(const LayerNormShape& shape, const LayerNormGradient<T>& g) {
  using A = Accum<T>;
  for (int64_t r = 0; r < shape.rows; ++r) {
    const int64_t at = r * shape.cols;
    const auto normal = [&](int64_t c) { return (widen(g.x[at + c]) - g.mean[r]) * g.rstd[r]; };
    A pushes = 0, pulls = 0;
    for (int64_t c = 0; c < shape.cols; ++c) {
      const A push = widen(g.dy[at + c]) * widen(g.weight[c]);
      pushes += push;
      pulls += push * normal(c);
    }
    for (int64_t c = 0; c < shape.cols; ++c) {
      const A dy = widen(g.dy[at + c]);
      const A change = dy * widen(g.weight[c]) - pushes / A(shape.cols) - normal(c) * pulls / A(shape.cols);
      g.dx[at + c] = narrow<T>(widen(g.dx[at + c]) + g.rstd[r] * change);
      g.dweight[c] += dy * normal(c);
      g.dbias[c] += dy;
    }
  }
}

}  // namespace tprimat::engine::reference
