#pragma once

#include "ops/matmul.h"

namespace tprimat::engine::reference {

template <class T, class C>
void matmul(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<C>& c,
            bool accumulate = false) {
  for (int64_t i = 0; i < c.rows; ++i) {
    for (int64_t j = 0; j < c.cols; ++j) {
      C& out = c.data[i * c.row_stride + j * c.col_stride];
      Accum<T> sum = accumulate ? static_cast<Accum<T>>(widen(out)) : Accum<T>(0);
      for (int64_t k = 0; k < a.cols; ++k)
        sum += widen(a.data[i * a.row_stride + k * a.col_stride]) * widen(b.data[k * b.row_stride + j * b.col_stride]);
      out = narrow<C>(static_cast<Accum<C>>(sum));
    }
  }
}

}  // namespace tprimat::engine::reference
