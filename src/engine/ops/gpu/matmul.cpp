#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "device/gpu/context.h"
#include "ops/fused_from_parts.h"
#include "ops/gpu/blas_product.h"
#include "ops/gpu/gpu_ops.h"

// Products through the vendor's library: cuBLASLt, hipBLASLt.
namespace tprimat::engine::gpu {
namespace {

template <class T>
struct Parts {
  void (*matmul)(const MatrixView<const T>&, const MatrixView<const T>&, const MatrixView<T>&,
                 bool) = &gpu::matmul<T, T>;
  void (*matmul_wide)(const MatrixView<const T>&, const MatrixView<const T>&, const MatrixView<float>&,
                      bool) = &gpu::matmul<T, float>;
  void (*add_bias)(int64_t, int64_t, const T*, T*) = &gpu::add_bias<T>;
  void (*add_column_sums)(int64_t, int64_t, const T*, float*) = &gpu::add_column_sums<T>;
  void (*bias_gelu_forward)(const GeluShape&, const T*, const T*, T*) = &gpu::bias_gelu_forward<T>;
  void (*bias_gelu_backward)(const GeluShape&, const BiasGeluGradient<T>&) = &gpu::bias_gelu_backward<T>;
};

void multiply_or_throw(const BlasProduct& product) {
  if (try_product(product)) return;
  throw Error(Problem{fmt::format("the GPU's matrix library has no kernel for a product of {}×{} and {}×{}", product.m,
                                  product.k, product.k, product.n),
                      "GPU matrix product", "choose sizes divisible by 8, or try a newer cuBLASLt or hipBLASLt"},
              ExitStatus::work_failed);
}

// The library wants these of what an epilogue reads or writes. Its gelu takes a tanh of its own, as short as the
// hardware's (11 bits): good enough for bf16, f16 and tf32, and not for fp32.
template <class T>
bool fits_epilogue(const Epilogue<T>& e, const MatrixView<T>& c) {
  const bool has_gelu = e.before_gelu != nullptr || e.gelu_input != nullptr;
  if (std::is_same_v<T, float> && has_gelu && !product_settings().tf32) return false;
  const auto aligned = [](const void* memory) { return reinterpret_cast<uintptr_t>(memory) % 16 == 0; };
  const T* const aux = e.before_gelu != nullptr ? e.before_gelu : e.gelu_input;
  if (!aligned(e.bias) || !aligned(aux)) return false;
  return aux == nullptr || c.cols % 8 == 0;
}

template <class T>
blas::BlasEpilogue epilogue_of(const Epilogue<T>& e) {
  if (e.gelu_input != nullptr) return blas::BlasEpilogue::dgelu;
  if (e.before_gelu != nullptr)
    return e.bias != nullptr ? blas::BlasEpilogue::gelu_aux_bias : blas::BlasEpilogue::gelu_aux;
  return e.bias != nullptr ? blas::BlasEpilogue::bias : blas::BlasEpilogue::none;
}

template <class T>
BlasProduct fused_product(const MatrixView<const T>& a, const MatrixView<const T>& b, const Epilogue<T>& e,
                          const MatrixView<T>& c) {
  BlasProduct product = plain_product<T, T>(a, b, c);
  product.bias = const_cast<T*>(e.bias);
  product.aux = e.before_gelu != nullptr ? e.before_gelu : const_cast<T*>(e.gelu_input);
  product.aux_stride = product.aux != nullptr ? c.cols : 0;
  product.epilogue = epilogue_of(e);
  return product;
}

}  // namespace

template <class T, class C>
void matmul(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<C>& c, bool accumulate) {
  CHECK(a.cols == b.rows && a.rows == c.rows && b.cols == c.cols && c.col_stride == 1);
  BlasProduct product = plain_product<T, C>(a, b, c);
  product.accumulate = accumulate;
  multiply_or_throw(product);
}

template <class T>
void matmul_fused(const MatrixView<const T>& a, const MatrixView<const T>& b, const Epilogue<T>& epilogue,
                  const MatrixView<T>& c) {
  CHECK(a.cols == b.rows && a.rows == c.rows && b.cols == c.cols);
  if (epilogue_of(epilogue) == blas::BlasEpilogue::none) return gpu::matmul<T, T>(a, b, c, false);
  const auto parts = [&] { matmul_fused_from_parts(Parts<T>{}, a, b, epilogue, c); };
  if (!fits_epilogue(epilogue, c) || !try_product_or(fused_product(a, b, epilogue, c), parts)) parts();
}

// The library sums up in float, and overwrites: what it found is added from the scratch memory.
template <class T>
void matmul_with_row_sums(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<float>& c,
                          bool accumulate, float* row_sums) {
  BlasProduct product = plain_product<T, float>(a, b, c);
  product.accumulate = accumulate;
  product.epilogue = blas::BlasEpilogue::sums_of_b;
  float* const sums = scratch<float>(c.rows);
  product.bias = sums;
  if (!try_product(product)) return matmul_with_row_sums_from_parts<T>(Parts<T>{}, a, b, {c, accumulate, row_sums});
  add<float>(c.rows, row_sums, sums, row_sums);
}

template void matmul<float, float>(const MatrixView<const float>&, const MatrixView<const float>&,
                                   const MatrixView<float>&, bool);
#define TPRIMAT_PRODUCTS(T, C) \
  template void matmul<T, C>(const MatrixView<const T>&, const MatrixView<const T>&, const MatrixView<C>&, bool);
TPRIMAT_PRODUCTS(bf16, bf16)
TPRIMAT_PRODUCTS(bf16, float)
TPRIMAT_PRODUCTS(f16, f16)
TPRIMAT_PRODUCTS(f16, float)
#undef TPRIMAT_PRODUCTS
#define TPRIMAT_FUSED_PRODUCTS(T)                                                                           \
  template void matmul_fused<T>(const MatrixView<const T>&, const MatrixView<const T>&, const Epilogue<T>&, \
                                const MatrixView<T>&);                                                      \
  template void matmul_with_row_sums<T>(const MatrixView<const T>&, const MatrixView<const T>&,             \
                                        const MatrixView<float>&, bool, float*);
TPRIMAT_FUSED_PRODUCTS(float)
TPRIMAT_FUSED_PRODUCTS(bf16)
TPRIMAT_FUSED_PRODUCTS(f16)
#undef TPRIMAT_FUSED_PRODUCTS

}  // namespace tprimat::engine::gpu
