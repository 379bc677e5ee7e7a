#include <fmt/format.h>

#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "device/gpu/context.h"
#include "ops/gpu/blas_product.h"
#include "ops/gpu/fp8_bits.h"
#include "ops/gpu/gpu_ops.h"

namespace tprimat::engine::gpu {
namespace {

blas::Number number_of(Fp8Format format) {
  if (fp8_is_fnuz()) return format == Fp8Format::e4m3 ? blas::Number::e4m3_fnuz : blas::Number::e5m2_fnuz;
  return format == Fp8Format::e4m3 ? blas::Number::e4m3 : blas::Number::e5m2;
}

BlasMatrix by_rows(const Fp8Matrix& m) { return {m.data, m.cols, 1, number_of(m.format), m.back}; }
BlasMatrix by_columns(const Fp8Matrix& m) { return {m.data, 1, m.cols, number_of(m.format), m.back}; }

}  // namespace

bool fp8_is_fnuz() {
#if defined(TPRIMAT_GPU_HIP)
  static const bool fnuz = [] {
    int device = 0;
    check(hipGetDevice(&device));
    DeviceProperties properties;
    check(driver::properties(&properties, device));
    return std::strncmp(properties.gcnArchName, "gfx94", 5) == 0;
  }();
  return fnuz;
#else
  return false;
#endif
}

template <class C>
void fp8_matmul(const Fp8Product<C>& p) {
  CHECK(p.a.cols == p.b.cols && p.a.rows == p.c.rows && p.b.rows == p.c.cols && p.c.col_stride == 1);
  BlasProduct product;
  product.m = p.c.rows;
  product.n = p.c.cols;
  product.k = p.a.cols;
  product.a = by_rows(p.a);
  product.b = by_columns(p.b);
  product.c = p.c.data;
  product.c_stride = p.c.row_stride;
  product.c_number = gpu::number_of<C>();
  product.accumulate = p.accumulate;
  product.fast_sums = p.fast_sums;
  if (try_product(product)) return;
  throw Error(Problem{fmt::format("this GPU's matrix library has no kernel for an fp8 product of {}×{} and {}×{}",
                                  product.m, product.k, product.k, product.n),
                      "GPU matrix product",
                      "train in bf16: fp8 needs NVIDIA Ada, Hopper or newer, or AMD CDNA3 or newer, and sizes "
                      "divisible by 16"},
              ExitStatus::work_failed);
}
template void fp8_matmul<float>(const Fp8Product<float>&);
template void fp8_matmul<bf16>(const Fp8Product<bf16>&);
template void fp8_matmul<f16>(const Fp8Product<f16>&);

}  // namespace tprimat::engine::gpu
