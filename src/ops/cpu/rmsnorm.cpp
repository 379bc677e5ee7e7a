#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/rmsnorm.cpp"
#include <hwy/foreach_target.h>

#include "ops/rmsnorm.h"

#include <hwy/highway.h>

#include <cmath>
#include <vector>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/reference/rmsnorm.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat {
namespace HWY_NAMESPACE {

template <class T>
void forward_row(const RmsNormShape& shape, const T* x, const T* weight, T* y, float* rstd) {
  const float squares = sum_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR {
    const auto v = load(d, x + c);
    return hn::Mul(v, v);
  });
  const float scale = 1.0f / std::sqrt(squares / static_cast<float>(shape.cols) + static_cast<float>(shape.eps));
  *rstd = scale;
  for_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR {
    store(d, hn::Mul(hn::Mul(load(d, x + c), hn::Set(d, scale)), load(d, weight + c)), y + c);
  });
}

template <class T>
void backward_row(const RmsNormShape& shape, const RmsNormGradient<T>& g, int64_t row, float* dweight) {
  const int64_t at = row * shape.cols;
  const T *x = g.x + at, *dy = g.dy + at;
  T* dx = g.dx + at;
  const float dot = sum_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR {
    return hn::Mul(hn::Mul(load(d, dy + c), load(d, g.weight + c)), load(d, x + c));
  });
  const float rstd = g.rstd[row];
  const float pull = dot * rstd * rstd * rstd / static_cast<float>(shape.cols);
  for_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR {
    const auto scaled = hn::Mul(load(d, dy + c), hn::Set(d, rstd));
    const auto input = load(d, x + c);
    const auto push = hn::MulAdd(scaled, load(d, g.weight + c), load(d, dx + c));
    store(d, hn::NegMulAdd(input, hn::Set(d, pull), push), dx + c);
    store(d, hn::MulAdd(scaled, input, load(d, dweight + c)), dweight + c);
  });
}

#define TPRIMAT_ROW_KERNELS(T, suffix)                                                                              \
  void forward_row_##suffix(const RmsNormShape& shape, const T* x, const T* weight, T* y, float* rstd) {            \
    forward_row<T>(shape, x, weight, y, rstd);                                                                      \
  }                                                                                                                 \
  void backward_row_##suffix(const RmsNormShape& shape, const RmsNormGradient<T>& g, int64_t row, float* dweight) { \
    backward_row<T>(shape, g, row, dweight);                                                                        \
  }
TPRIMAT_ROW_KERNELS(float, float)
TPRIMAT_ROW_KERNELS(bf16, bf16)
#undef TPRIMAT_ROW_KERNELS

}  // namespace HWY_NAMESPACE
}  // namespace tprimat
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat {
namespace {

HWY_EXPORT(forward_row_float);
HWY_EXPORT(forward_row_bf16);
HWY_EXPORT(backward_row_float);
HWY_EXPORT(backward_row_bf16);

template <class T, class RowKernel>
void forward(const RmsNormShape& shape, const T* x, const T* weight, T* y, float* rstd, RowKernel kernel) {
  parallel_ranges(shape.rows, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) kernel(shape, x + r * shape.cols, weight, y + r * shape.cols, rstd + r);
  });
}

// Each thread adds up its own weight gradient; they are then added in the order of the threads.
template <class T, class RowKernel>
void backward(const RmsNormShape& shape, const RmsNormGradient<T>& g, RowKernel kernel) {
  const int64_t stride = shape.cols + 32;
  std::vector<float> partial(static_cast<size_t>(stride * thread_count()), 0.0f);
  parallel_ranges(shape.rows, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t r = begin; r < end; ++r) kernel(shape, g, r, partial.data() + thread * stride);
  });
  for (int thread = 0; thread < thread_count(); ++thread)
    for (int64_t c = 0; c < shape.cols; ++c) g.dweight[c] += partial[static_cast<size_t>(thread * stride + c)];
}

}  // namespace

template <>
void rmsnorm_forward<float>(const RmsNormShape& shape, const float* x, const float* weight, float* y, float* rstd) {
  forward(shape, x, weight, y, rstd, HWY_DYNAMIC_DISPATCH(forward_row_float));
}
template <>
void rmsnorm_forward<bf16>(const RmsNormShape& shape, const bf16* x, const bf16* weight, bf16* y, float* rstd) {
  forward(shape, x, weight, y, rstd, HWY_DYNAMIC_DISPATCH(forward_row_bf16));
}
template <>
void rmsnorm_forward<double>(const RmsNormShape& shape, const double* x, const double* weight, double* y,
                             double* rstd) {
  reference::rmsnorm_forward(shape, x, weight, y, rstd);
}

template <>
void rmsnorm_backward<float>(const RmsNormShape& shape, const RmsNormGradient<float>& g) {
  backward(shape, g, HWY_DYNAMIC_DISPATCH(backward_row_float));
}
template <>
void rmsnorm_backward<bf16>(const RmsNormShape& shape, const RmsNormGradient<bf16>& g) {
  backward(shape, g, HWY_DYNAMIC_DISPATCH(backward_row_bf16));
}
template <>
void rmsnorm_backward<double>(const RmsNormShape& shape, const RmsNormGradient<double>& g) {
  reference::rmsnorm_backward(shape, g);
}

}  // namespace tprimat
#endif  // HWY_ONCE
