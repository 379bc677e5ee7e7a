#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/rmsnorm.cpp"
#include <hwy/foreach_target.h>

#include "ops/rmsnorm.h"

#include <hwy/highway.h>

#include <cmath>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/cpu/thread_sums.h"
#include "ops/reference/rmsnorm.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

// Writes y = x · rstd · weight and returns rstd, given Σ x².
template <class T>
float normalise_row(const RmsNormShape& shape, float squares, const T* x, const T* weight, T* y) {
  const float scale = 1.0f / std::sqrt(squares / static_cast<float>(shape.cols) + static_cast<float>(shape.eps));
  for_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR {
    store(d, hn::Mul(hn::Mul(load(d, x + c), hn::Set(d, scale)), load(d, weight + c)), y + c);
  });
  return scale;
}

template <class T>
float forward_row(const RmsNormShape& shape, const T* x, const T* weight, T* y) {
  const float squares = sum_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR {
    const auto v = load(d, x + c);
    return hn::Mul(v, v);
  });
  return normalise_row(shape, squares, x, weight, y);
}

template <class T>
float add_forward_row(const RmsNormShape& shape, const ResidualSum<T>& row, const T* weight, T* y) {
  const float squares = sum_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR {
    store(d, hn::Add(load(d, row.a + c), load(d, row.b + c)), row.sum + c);
    const auto v = load(d, row.sum + c);  // as it was rounded
    return hn::Mul(v, v);
  });
  return normalise_row<T>(shape, squares, row.sum, weight, y);
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

#define TPRIMAT_KERNELS(T)                                                                                     \
  float forward_row_##T(const RmsNormShape& shape, const T* x, const T* weight, T* y) {                        \
    return forward_row<T>(shape, x, weight, y);                                                                \
  }                                                                                                            \
  float add_forward_row_##T(const RmsNormShape& shape, const ResidualSum<T>& row, const T* weight, T* y) {     \
    return add_forward_row<T>(shape, row, weight, y);                                                          \
  }                                                                                                            \
  void backward_row_##T(const RmsNormShape& shape, const RmsNormGradient<T>& g, int64_t row, float* dweight) { \
    backward_row<T>(shape, g, row, dweight);                                                                   \
  }
TPRIMAT_KERNELS(float)
TPRIMAT_KERNELS(bf16)
TPRIMAT_KERNELS(f16)
#undef TPRIMAT_KERNELS

}  // namespace HWY_NAMESPACE
}  // namespace tprimat::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat::engine {
namespace {

template <class RowKernel>
void for_rows(const RmsNormShape& shape, const RowKernel& kernel) {
  parallel_ranges(shape.rows, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) kernel(r, r * shape.cols);
  });
}

template <class T, class RowKernel>
void backward(const RmsNormShape& shape, const RmsNormGradient<T>& g, RowKernel kernel) {
  ThreadSums dweight(shape.cols);
  parallel_ranges(shape.rows, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t r = begin; r < end; ++r) kernel(shape, g, r, dweight.of(thread));
  });
  dweight.add_to(0, shape.cols, g.dweight);
}

}  // namespace

#define TPRIMAT_RMSNORM(T)                                                                               \
  HWY_EXPORT(forward_row_##T);                                                                           \
  HWY_EXPORT(add_forward_row_##T);                                                                       \
  HWY_EXPORT(backward_row_##T);                                                                          \
  template <>                                                                                            \
  void rmsnorm_forward<T>(const RmsNormShape& shape, const T* x, const T* weight, T* y, float* rstd) {   \
    const auto kernel = HWY_DYNAMIC_DISPATCH(forward_row_##T);                                           \
    for_rows(shape, [&](int64_t r, int64_t at) { rstd[r] = kernel(shape, x + at, weight, y + at); });    \
  }                                                                                                      \
  template <>                                                                                            \
  void add_rmsnorm_forward<T>(const RmsNormShape& shape, const ResidualSum<T>& s, const T* weight, T* y, \
                              float* rstd) {                                                             \
    const auto kernel = HWY_DYNAMIC_DISPATCH(add_forward_row_##T);                                       \
    for_rows(shape, [&](int64_t r, int64_t at) {                                                         \
      rstd[r] = kernel(shape, {s.a + at, s.b + at, s.sum + at}, weight, y + at);                         \
    });                                                                                                  \
  }                                                                                                      \
  template <>                                                                                            \
  void rmsnorm_backward<T>(const RmsNormShape& shape, const RmsNormGradient<T>& g) {                     \
    backward(shape, g, HWY_DYNAMIC_DISPATCH(backward_row_##T));                                          \
  }
TPRIMAT_RMSNORM(float)
TPRIMAT_RMSNORM(bf16)
TPRIMAT_RMSNORM(f16)
#undef TPRIMAT_RMSNORM

template <>
void rmsnorm_forward<double>(const RmsNormShape& shape, const double* x, const double* weight, double* y,
                             double* rstd) {
  reference::rmsnorm_forward(shape, x, weight, y, rstd);
}
template <>
void add_rmsnorm_forward<double>(const RmsNormShape& shape, const ResidualSum<double>& residual, const double* weight,
                                 double* y, double* rstd) {
  reference::add_rmsnorm_forward(shape, residual, weight, y, rstd);
}
template <>
void rmsnorm_backward<double>(const RmsNormShape& shape, const RmsNormGradient<double>& g) {
  reference::rmsnorm_backward(shape, g);
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
