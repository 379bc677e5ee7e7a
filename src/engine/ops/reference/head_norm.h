#pragma once

#include <cmath>

#include "ops/head_norm.h"

namespace tprimat::engine::reference {

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
void head_norm_backward(const HeadNormShape& shape, const HeadNormGradient<T>& g) {
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
