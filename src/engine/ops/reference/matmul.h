#pragma once

#include "ops/matmul.h"
#include "ops/reference/gelu.h"

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

template <class T>
void matmul_fused(const MatrixView<const T>& a, const MatrixView<const T>& b, const Epilogue<T>& e,
                  const MatrixView<T>& c) {
  using A = Accum<T>;
  for (int64_t r = 0; r < c.rows; ++r)
    for (int64_t col = 0; col < c.cols; ++col) {
      A sum = e.bias != nullptr ? widen(e.bias[col]) : A(0);
      for (int64_t k = 0; k < a.cols; ++k)
        sum +=
            widen(a.data[r * a.row_stride + k * a.col_stride]) * widen(b.data[k * b.row_stride + col * b.col_stride]);
      const int64_t at = r * c.cols + col;
      if (e.before_gelu != nullptr) {
        e.before_gelu[at] = narrow<T>(sum);
        sum = gelu(sum);
      }
      if (e.gelu_input != nullptr) sum *= gelu_slope(widen(e.gelu_input[at]));
      c.data[r * c.row_stride + col * c.col_stride] = narrow<T>(sum);
    }
}

template <class T>
void matmul_with_row_sums(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<Accum<T>>& c,
                          bool accumulate, Accum<T>* row_sums) {
  reference::matmul<T, Accum<T>>(a, b, c, accumulate);
  for (int64_t r = 0; r < a.rows; ++r)
    for (int64_t k = 0; k < a.cols; ++k) row_sums[r] += widen(a.data[r * a.row_stride + k * a.col_stride]);
}

}  // namespace tprimat::engine::reference
