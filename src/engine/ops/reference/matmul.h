#pragma once

#include <vector>

#include "base/check.h"
#include "ops/matmul.h"
#include "ops/reference/gelu.h"
#include "ops/reference/swiglu.h"

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
  CHECK(!e.keeps_slopes && !e.to_blocks);
  const int64_t rows = c.rows, cols = b.cols;
  std::vector<T> product(static_cast<size_t>(rows * cols));
  reference::matmul<T, T>(a, b, matrix(product.data(), rows, cols));
  if (e.swiglu_input != nullptr) return swiglu_backward({rows, cols}, e.swiglu_input, product.data(), c.data);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t col = 0; col < cols; ++col) {
      const int64_t at = r * cols + col;
      Accum<T> sum = widen(product[static_cast<size_t>(at)]);
      if (e.bias != nullptr) sum += widen(e.bias[col]);
      if (e.before_gelu != nullptr) {
        e.before_gelu[at] = narrow<T>(sum);
        sum = gelu(sum);
      }
      if (e.gelu_input != nullptr) sum *= gelu_slope(widen(e.gelu_input[at]));
      c.data[r * c.row_stride + col * c.col_stride] = narrow<T>(sum);
    }
  if (e.swiglu != nullptr) swiglu_forward({rows, cols / 2}, c.data, e.swiglu);
}

template <class T>
void matmul_with_row_sums(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<Accum<T>>& c,
                          bool accumulate, Accum<T>* row_sums) {
  reference::matmul<T, Accum<T>>(a, b, c, accumulate);
  for (int64_t r = 0; r < a.rows; ++r)
    for (int64_t k = 0; k < a.cols; ++k) row_sums[r] += widen(a.data[r * a.row_stride + k * a.col_stride]);
}

}  // namespace tprimat::engine::reference
