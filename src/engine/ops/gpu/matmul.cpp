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
  if (epilogue_of(epilogue) == blas::BlasEpilogue::none) return matmul<T, T>(a, b, c, false);
  const auto parts = [&] { matmul_fused_from_parts(gpu_ops<T>(), a, b, epilogue, c); };
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
  if (!try_product(product)) return matmul_with_row_sums_from_parts<T>(gpu_ops<T>(), a, b, {c, accumulate, row_sums});
  gpu_ops<T>().add_wide(c.rows, row_sums, sums, row_sums);
}

}  // namespace

void set_ops(OpsByFormat<MatmulOps>& ops) {
  ops.set_fast([]<class T>(MatmulOps<T>& fast) {
    fast = {matmul<T, T>, matmul<T, float>, matmul_fused<T>, matmul_with_row_sums<T>};
    fast.fused_gelu_multiple = 1;
  });
}

}  // namespace tprimat::engine::gpu
