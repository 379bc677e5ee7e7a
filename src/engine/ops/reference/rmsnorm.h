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

template <class Visit>
void for_each_head(const HeadNormShape& shape, const Visit& visit) {
  for (int64_t r = 0; r < shape.rows; ++r)
    for (int64_t h = 0; h < shape.heads; ++h)
      visit(r * shape.x_row_stride + h * shape.head_dim, r * shape.y_row_stride + h * shape.head_dim,
            r * shape.heads + h);
}

template <class T>
void head_norm_forward(const HeadNormShape& shape, const T* x, const T* weight, T* y, Accum<T>* rstd) {
  using A = Accum<T>;
  for_each_head(shape, [&](int64_t at_x, int64_t at_y, int64_t head) {
    A squares = 0;
    for (int64_t c = 0; c < shape.head_dim; ++c) squares += widen(x[at_x + c]) * widen(x[at_x + c]);
    rstd[head] = A(1) / std::sqrt(squares / A(shape.head_dim) + A(shape.eps));
    for (int64_t c = 0; c < shape.head_dim; ++c)
      y[at_y + c] = narrow<T>(widen(x[at_x + c]) * rstd[head] * widen(weight[c]));
  });
}

template <class T>
void head_norm_backward(const HeadNormShape& shape, const RmsNormGradient<T>& g) {
  using A = Accum<T>;
  for_each_head(shape, [&](int64_t at_x, int64_t at_y, int64_t head) {
    const T *x = g.x + at_x, *dy = g.dy + at_y;
    const A rstd = g.rstd[head];
    A dot = 0;
    for (int64_t c = 0; c < shape.head_dim; ++c) dot += widen(dy[c]) * widen(g.weight[c]) * widen(x[c]);
    for (int64_t c = 0; c < shape.head_dim; ++c) {
      const A grad = widen(dy[c]), input = widen(x[c]);
      g.dx[at_x + c] =
          narrow<T>(rstd * grad * widen(g.weight[c]) - input * rstd * rstd * rstd * dot / A(shape.head_dim));
      g.dweight[c] += grad * input * rstd;
    }
  });
}

}  // namespace tprimat::engine::reference
