#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/head_norm.cpp"
#include <hwy/foreach_target.h>

#include "ops/head_norm.h"

#include <hwy/highway.h>

#include <cmath>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/cpu/thread_sums.h"
#include "ops/reference/head_norm.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

template <class T>
void forward_row(const HeadNormShape& shape, const T* x, const T* weight, T* y, float* rstd) {
  const auto width = static_cast<float>(shape.head_dim);
  for (int64_t h = 0; h < shape.heads; ++h, x += shape.head_dim, y += shape.head_dim) {
    const float squares = sum_lanes(0, shape.head_dim, [&](auto d, int64_t c) HWY_ATTR {
      const auto v = load(d, x + c);
      return hn::Mul(v, v);
    });
    const float scale = 1.0f / std::sqrt(squares / width + static_cast<float>(shape.eps));
    rstd[h] = scale;
    for_lanes(0, shape.head_dim, [&](auto d, int64_t c) HWY_ATTR {
      store(d, hn::Mul(hn::Mul(load(d, x + c), hn::Set(d, scale)), load(d, weight + c)), y + c);
    });
  }
}

template <class T>
void backward_row(const HeadNormShape& shape, const HeadNormGradient<T>& g, int64_t row, float* dweight) {
  const T *x = g.x + row * shape.x_row_stride, *dy = g.dy + row * shape.y_row_stride;
  T* dx = g.dx + row * shape.x_row_stride;
  for (int64_t h = 0; h < shape.heads; ++h, x += shape.head_dim, dx += shape.head_dim, dy += shape.head_dim) {
    const float dot = sum_lanes(0, shape.head_dim, [&](auto d, int64_t c) HWY_ATTR {
      return hn::Mul(hn::Mul(load(d, dy + c), load(d, g.weight + c)), load(d, x + c));
    });
    const float rstd = g.rstd[row * shape.heads + h];
    const float pull = dot * rstd * rstd * rstd / static_cast<float>(shape.head_dim);
    for_lanes(0, shape.head_dim, [&](auto d, int64_t c) HWY_ATTR {
      const auto scaled = hn::Mul(load(d, dy + c), hn::Set(d, rstd)), input = load(d, x + c);
      const auto push = hn::Mul(scaled, load(d, g.weight + c));
      store(d, hn::NegMulAdd(input, hn::Set(d, pull), push), dx + c);
      store(d, hn::MulAdd(scaled, input, load(d, dweight + c)), dweight + c);
    });
  }
}

#define TPRIMAT_KERNELS(T)                                                                                       \
  void forward_row_##T(const HeadNormShape& shape, const T* x, const T* weight, T* y, float* rstd) {             \
    forward_row<T>(shape, x, weight, y, rstd);                                                                   \
  }                                                                                                              \
  void backward_row_##T(const HeadNormShape& shape, const HeadNormGradient<T>& g, int64_t row, float* dweight) { \
    backward_row<T>(shape, g, row, dweight);                                                                     \
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

template <class T, class RowKernel>
void backward(const HeadNormShape& shape, const HeadNormGradient<T>& g, RowKernel kernel) {
  ThreadSums dweight(shape.head_dim);
  parallel_ranges(shape.rows, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t r = begin; r < end; ++r) kernel(shape, g, r, dweight.of(thread));
  });
  dweight.add_to(0, shape.head_dim, g.dweight);
}

}  // namespace

#define TPRIMAT_HEAD_NORM(T)                                                                                   \
  HWY_EXPORT(forward_row_##T);                                                                                 \
  HWY_EXPORT(backward_row_##T);                                                                                \
  template <>                                                                                                  \
  void head_norm_forward<T>(const HeadNormShape& shape, const T* x, const T* weight, T* y, float* rstd) {      \
    const auto kernel = HWY_DYNAMIC_DISPATCH(forward_row_##T);                                                 \
    parallel_ranges(shape.rows, [&](int64_t begin, int64_t end) {                                              \
      for (int64_t r = begin; r < end; ++r)                                                                    \
        kernel(shape, x + r * shape.x_row_stride, weight, y + r * shape.y_row_stride, rstd + r * shape.heads); \
    });                                                                                                        \
  }                                                                                                            \
  template <>                                                                                                  \
  void head_norm_backward<T>(const HeadNormShape& shape, const HeadNormGradient<T>& g) {                       \
    backward(shape, g, HWY_DYNAMIC_DISPATCH(backward_row_##T));                                                \
  }
TPRIMAT_HEAD_NORM(float)
TPRIMAT_HEAD_NORM(bf16)
TPRIMAT_HEAD_NORM(f16)
#undef TPRIMAT_HEAD_NORM

template <>
void head_norm_forward<double>(const HeadNormShape& shape, const double* x, const double* weight, double* y,
                               double* rstd) {
  reference::head_norm_forward(shape, x, weight, y, rstd);
}
template <>
void head_norm_backward<double>(const HeadNormShape& shape, const HeadNormGradient<double>& g) {
  reference::head_norm_backward(shape, g);
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
