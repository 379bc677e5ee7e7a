#pragma once

#include "base/check.h"
#include "ops/matmul.h"

namespace tprimat::engine {

// A fused product out of a device's single operations; `Ops` has them as an OpTable<T> has.
template <class T, class Ops>
void matmul_fused_from_parts(const Ops& ops, const MatrixView<const T>& a, const MatrixView<const T>& b,
                             const Epilogue<T>& e, const MatrixView<T>& c) {
  CHECK(e.gelu_input == nullptr || (e.bias == nullptr && e.before_gelu == nullptr));
  CHECK(e.swiglu == nullptr && e.swiglu_input == nullptr && !e.to_blocks && !e.keeps_slopes);
  CHECK(c.col_stride == 1 && (c.row_stride == c.cols || c.rows <= 1));
  const MatrixView<T> sum = e.before_gelu != nullptr ? matrix(e.before_gelu, c.rows, c.cols) : c;
  ops.matmul(a, b, sum, false);
  if (e.bias != nullptr) ops.add_bias(c.rows, c.cols, e.bias, sum.data);
  if (e.before_gelu != nullptr) ops.bias_gelu_forward({c.rows, c.cols}, sum.data, nullptr, c.data);
  if (e.gelu_input != nullptr)
    ops.bias_gelu_backward({c.rows, c.cols}, {e.gelu_input, nullptr, c.data, c.data, nullptr});
}

// A product and the sums of its left matrix's rows.
template <class T>
struct ProductAndSums {
  const MatrixView<Accum<T>>& product;
  bool accumulate;  // the product, to what is there
  Accum<T>* row_sums;
};

template <class T, class Ops>
void matmul_with_row_sums_from_parts(const Ops& ops, const MatrixView<const T>& a, const MatrixView<const T>& b,
                                     const ProductAndSums<T>& to) {
  CHECK(!a.in_blocks && a.row_stride == 1 &&
        (a.col_stride == a.rows || a.cols <= 1));  // the transpose of a matrix without gaps
  ops.matmul_wide(a, b, to.product, to.accumulate);
  ops.add_column_sums(a.cols, a.rows, a.data, to.row_sums);
}

}  // namespace tprimat::engine
