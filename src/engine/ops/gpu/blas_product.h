#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ops/fp8.h"
#include "ops/gpu/blas.h"
#include "ops/kernel_report.h"
#include "ops/matmul.h"
#include "ops/product_settings.h"

namespace tprimat::engine::gpu {

ProductSettings& product_settings();
KernelReport& kernel_report();

// That something is done otherwise than was asked for, or slower: each sentence becomes a warning of the report once.
void warn_once(const std::string& sentence);

// c = a·b with what follows it, row-major as everywhere in ops: a is m×k, b k×n, c m×n.
struct BlasMatrix {
  const void* data = nullptr;
  int64_t row_stride = 0, col_stride = 0;  // one of them is 1
  blas::Number number = blas::Number::float32;
  const float* scale = nullptr;  // of 8-bit formats: on the device, multiplies every element
};
struct BlasProduct {
  int64_t m = 0, n = 0, k = 0;
  BlasMatrix a, b;
  void* c = nullptr;
  int64_t c_stride = 0;
  blas::Number c_number = blas::Number::float32;
  bool accumulate = false;
  bool fast_sums = false;  // of 8-bit formats: the matrix unit's own accumulator, of fewer bits than a float's
  // In the row-major words of c: bias n values that each row gets; the gelus aux like c;
  // sums_of_b: bias m floats, overwritten with Σ_k a[r,k].
  blas::BlasEpilogue epilogue = blas::BlasEpilogue::none;
  void* bias = nullptr;
  void* aux = nullptr;
  int64_t aux_stride = 0;
};

// False where the library has no kernel for it: nothing was done.
bool try_product(const BlasProduct& product);
// The same where `parts`, which makes the same result in several operations, is not faster: false there, too. That is
// measured once where candidates are timed (ProductSettings); both overwrite all that they write.
bool try_product_or(const BlasProduct& product, const std::function<void()>& parts);

template <class T>
constexpr blas::Number number_of() {
  if constexpr (std::is_same_v<T, bf16>) return blas::Number::bfloat16;
  if constexpr (std::is_same_v<T, f16>) return blas::Number::float16;
  return blas::Number::float32;
}
template <class T>
BlasMatrix blas_matrix(const MatrixView<const T>& m) {
  return {m.data, m.row_stride, m.col_stride, number_of<T>(), nullptr};
}
template <class T, class C>
BlasProduct plain_product(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<C>& c) {
  BlasProduct product;
  product.m = c.rows;
  product.n = c.cols;
  product.k = a.cols;
  product.a = blas_matrix(a);
  product.b = blas_matrix(b);
  product.c = c.data;
  product.c_stride = c.row_stride;
  product.c_number = number_of<C>();
  return product;
}

}  // namespace tprimat::engine::gpu
