#pragma once

#include <cstdint>

#include "device/element.h"

namespace tprimat::engine {

// A matrix in memory: element (r, c) is at data[r·row_stride + c·col_stride]; one of the strides is 1.
template <class T>
struct MatrixView {
  T* data;
  int64_t rows;
  int64_t cols;
  int64_t row_stride;
  int64_t col_stride;
};

// Row-major rows×cols without gaps.
template <class T>
MatrixView<T> matrix(T* data, int64_t rows, int64_t cols) {
  return {data, rows, cols, cols, 1};
}
template <class T>
MatrixView<T> transposed(const MatrixView<T>& m) {
  return {m.data, m.cols, m.rows, m.col_stride, m.row_stride};
}

// c = a·b, or c += a·b. Products of T are added up in Accum<T>; C is T or Accum<T>, row-major.
// Fast form: oneDNN, which picks the kernel for this CPU; for bf16 on a CPU with AVX512-BF16 and without AMX our own
// (cpu/bf16_product.h); both measured in docs/performance.md. Where oneDNN has none (f16
// without AVX512-FP16, bf16 below AVX-512), the inputs are widened to float, in which the product of two is exact, and
// multiplied there; the float copies are kept from one call to the next. Called from one thread at a time.
template <class T, class C>
void matmul(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<C>& c,
            bool accumulate = false);

}  // namespace tprimat::engine
