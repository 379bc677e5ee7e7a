#pragma once

#include <cmath>

#include "ops/reference/elementwise.h"
#include "ops/rmsnorm.h"

namespace tprimat::engine::reference {

template <class T>
void rmsnorm_forward(const RmsNormShape& shape, const T* x, const T* weight, T* y, Accum<T>* rstd) {
  using A = Accum<T>;
  for (int64_t r = 0; r < shape.rows; ++r) {
    const T* row = x + r * shape.cols;
    A squares = 0;
    for (int64_t c = 0; c < shape.cols; ++c) squares += widen(row[c]) * widen(row[c]);
    rstd[r] = A(1) / std::sqrt(squares / A(shape.cols) + A(shape.eps));
    for (int64_t c = 0; c < shape.cols; ++c)
      y[r * shape.cols + c] = narrow<T>(widen(row[c]) * rstd[r] * widen(weight[c]));
  }
}

template <class T>
void add_rmsnorm_forward(const RmsNormShape& shape, const ResidualSum<T>& residual, const T* weight, T* y,
                         Accum<T>* rstd) {
  reference::add(shape.rows * shape.cols, residual.a, residual.b, residual.sum);
  reference::rmsnorm_forward<T>(shape, residual.sum, weight, y, rstd);
}

template <class T>
void rmsnorm_backward(const RmsNormShape& shape, const RmsNormGradient<T>& g) {
  using A = Accum<T>;
  for (int64_t r = 0; r < shape.rows; ++r) {
    const int64_t at = r * shape.cols;
    A dot = 0;
    for (int64_t c = 0; c < shape.cols; ++c) dot += widen(g.dy[at + c]) * widen(g.weight[c]) * widen(g.x[at + c]);
    const A rstd = g.rstd[r];
    const A pull = dot * rstd * rstd * rstd / A(shape.cols);
    for (int64_t c = 0; c < shape.cols; ++c) {
      const A push = widen(g.dy[at + c]) * widen(g.weight[c]) * rstd - widen(g.x[at + c]) * pull;
      g.dx[at + c] = narrow<T>(widen(g.dx[at + c]) + push);
      g.dweight[c] += widen(g.dy[at + c]) * widen(g.x[at + c]) * rstd;
    }
  }
}

}  // namespace tprimat::engine::reference
