#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/layernorm.cpp"
#include <hwy/foreach_target.h>

#include "ops/layernorm.h"

#include <hwy/highway.h>

#include <cmath>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/cpu/thread_sums.h"
#include "ops/reference/layernorm.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

struct RowStatistics {
  float mean, rstd;
};

// Writes y = (x − mean) · rstd · weight + bias, given Σ x.
template <class T>
RowStatistics normalise_row(const LayerNormShape& shape, float sum, const T* x, const LayerNormWeights<T>& w, T* y) {
  const auto cols = static_cast<float>(shape.cols);
  const float mean = sum / cols;
  const float squares = sum_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR {
    const auto v = hn::Sub(load(d, x + c), hn::Set(d, mean));
    return hn::Mul(v, v);
  });
  const float rstd = 1.0f / std::sqrt(squares / cols + static_cast<float>(shape.eps));
  for_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR {
    const auto normal = hn::Mul(hn::Sub(load(d, x + c), hn::Set(d, mean)), hn::Set(d, rstd));
    store(d, hn::MulAdd(normal, load(d, w.weight + c), load(d, w.bias + c)), y + c);
  });
  return {mean, rstd};
}

template <class T>
void forward_row(const LayerNormShape& shape, const T* x, const LayerNormWeights<T>& w, const LayerNormOutput<T>& out) {
  const float sum = sum_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR { return load(d, x + c); });
  const RowStatistics row = normalise_row(shape, sum, x, w, out.y);
  *out.mean = row.mean, *out.rstd = row.rstd;
}

template <class T>
void add_forward_row(const LayerNormShape& shape, const ResidualSum<T>& s, const LayerNormWeights<T>& w,
                     const LayerNormOutput<T>& out) {
  const float sum = sum_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR {
    store(d, hn::Add(load(d, s.a + c), load(d, s.b + c)), s.sum + c);
    return load(d, s.sum + c);  // as it was rounded
  });
  const RowStatistics row = normalise_row<T>(shape, sum, s.sum, w, out.y);
  *out.mean = row.mean, *out.rstd = row.rstd;
}

// sums: dweight, then dbias, of this thread.
template <class T>
void backward_row(const LayerNormShape& shape, const LayerNormGradient<T>& g, int64_t row, float* sums) {
  const int64_t at = row * shape.cols;
  const T *x = g.x + at, *dy = g.dy + at;
  T* dx = g.dx + at;
  const float mean = g.mean[row], rstd = g.rstd[row], share = 1.0f / static_cast<float>(shape.cols);
  const auto normal = [&](auto d, int64_t c)
                          HWY_ATTR { return hn::Mul(hn::Sub(load(d, x + c), hn::Set(d, mean)), hn::Set(d, rstd)); };
  const float push = share * sum_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR {
                       return hn::Mul(load(d, dy + c), load(d, g.weight + c));
                     });
  const float pull = share * sum_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR {
                       return hn::Mul(hn::Mul(load(d, dy + c), load(d, g.weight + c)), normal(d, c));
                     });
  float* dbias = sums + shape.cols;
  for_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR {
    const auto grad = load(d, dy + c), n = normal(d, c);
    const auto centred = hn::MulSub(grad, load(d, g.weight + c), hn::Set(d, push));
    const auto change = hn::NegMulAdd(n, hn::Set(d, pull), centred);
    store(d, hn::MulAdd(change, hn::Set(d, rstd), load(d, dx + c)), dx + c);
    store(d, hn::MulAdd(grad, n, load(d, sums + c)), sums + c);
    store(d, hn::Add(grad, load(d, dbias + c)), dbias + c);
  });
}

#define TPRIMAT_KERNELS(T)                                                                                      \
  void forward_row_##T(const LayerNormShape& shape, const T* x, const LayerNormWeights<T>& w,                   \
                       const LayerNormOutput<T>& out) {                                                         \
    forward_row<T>(shape, x, w, out);                                                                           \
  }                                                                                                             \
  void add_forward_row_##T(const LayerNormShape& shape, const ResidualSum<T>& s, const LayerNormWeights<T>& w,  \
                           const LayerNormOutput<T>& out) {                                                     \
    add_forward_row<T>(shape, s, w, out);                                                                       \
  }                                                                                                             \
  void backward_row_##T(const LayerNormShape& shape, const LayerNormGradient<T>& g, int64_t row, float* sums) { \
    backward_row<T>(shape, g, row, sums);                                                                       \
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

// kernel(offset of the row, where its results go)
template <class T, class RowKernel>
void for_rows(const LayerNormShape& shape, const LayerNormOutput<T>& out, const RowKernel& kernel) {
  parallel_ranges(shape.rows, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      kernel(r * shape.cols, LayerNormOutput<T>{out.y + r * shape.cols, out.mean + r, out.rstd + r});
  });
}

template <class T, class RowKernel>
void backward(const LayerNormShape& shape, const LayerNormGradient<T>& g, RowKernel kernel) {
  ThreadSums sums(2 * shape.cols);
  parallel_ranges(shape.rows, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t r = begin; r < end; ++r) kernel(shape, g, r, sums.of(thread));
  });
  sums.add_to(0, shape.cols, g.dweight);
  sums.add_to(shape.cols, shape.cols, g.dbias);
}

}  // namespace

#define TPRIMAT_LAYERNORM(T)                                                                                          \
  HWY_EXPORT(forward_row_##T);                                                                                        \
  HWY_EXPORT(add_forward_row_##T);                                                                                    \
  HWY_EXPORT(backward_row_##T);                                                                                       \
  template <>                                                                                                         \
  void layernorm_forward<T>(const LayerNormShape& shape, const T* x, const LayerNormWeights<T>& weights,              \
                            const LayerNormOutput<T>& output) {                                                       \
    const auto kernel = HWY_DYNAMIC_DISPATCH(forward_row_##T);                                                        \
    for_rows(shape, output, [&](int64_t at, const LayerNormOutput<T>& row) { kernel(shape, x + at, weights, row); }); \
  }                                                                                                                   \
  template <>                                                                                                         \
  void add_layernorm_forward<T>(const LayerNormShape& shape, const ResidualSum<T>& s,                                 \
                                const LayerNormWeights<T>& weights, const LayerNormOutput<T>& output) {               \
    const auto kernel = HWY_DYNAMIC_DISPATCH(add_forward_row_##T);                                                    \
    for_rows(shape, output, [&](int64_t at, const LayerNormOutput<T>& row) {                                          \
      kernel(shape, {s.a + at, s.b + at, s.sum + at}, weights, row);                                                  \
    });                                                                                                               \
  }                                                                                                                   \
  template <>                                                                                                         \
  void layernorm_backward<T>(const LayerNormShape& shape, const LayerNormGradient<T>& g) {                            \
    backward(shape, g, HWY_DYNAMIC_DISPATCH(backward_row_##T));                                                       \
  }
TPRIMAT_LAYERNORM(float)
TPRIMAT_LAYERNORM(bf16)
TPRIMAT_LAYERNORM(f16)
#undef TPRIMAT_LAYERNORM

template <>
void layernorm_forward<double>(const LayerNormShape& shape, const double* x, const LayerNormWeights<double>& weights,
                               const LayerNormOutput<double>& output) {
  reference::layernorm_forward(shape, x, weights, output);
}
template <>
void add_layernorm_forward<double>(const LayerNormShape& shape, const ResidualSum<double>& residual,
                                   const LayerNormWeights<double>& weights, const LayerNormOutput<double>& output) {
  reference::add_layernorm_forward(shape, residual, weights, output);
}
template <>
void layernorm_backward<double>(const LayerNormShape& shape, const LayerNormGradient<double>& g) {
  reference::layernorm_backward(shape, g);
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
