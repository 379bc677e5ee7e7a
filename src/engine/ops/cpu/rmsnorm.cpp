#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/rmsnorm.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <cmath>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/cpu/thread_sums.h"
#include "ops/op_table.h"
#include "ops/reference/rmsnorm.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

// Writes y = x · rstd · weight, past the caches if `Streams`, and returns rstd, given Σ x².
template <bool Streams, class T>
HWY_INLINE float normalise_row(const RmsNormShape& shape, float squares, const T* x, const T* weight, T* y) {
  const float scale = 1.0f / std::sqrt(squares / static_cast<float>(shape.cols) + static_cast<float>(shape.eps));
  for_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR {
    put<Streams>(d, hn::Mul(hn::Mul(load(d, x + c), hn::Set(d, scale)), load(d, weight + c)), y + c);
  });
  return scale;
}

template <bool Streams, class T>
HWY_INLINE float forward_row(const RmsNormShape& shape, const T* x, const T* weight, T* y) {
  const float squares = sum_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR {
    const auto v = load(d, x + c);
    return hn::Mul(v, v);
  });
  return normalise_row<Streams>(shape, squares, x, weight, y);
}

template <bool Streams, class T>
float add_forward_row(const RmsNormShape& shape, const ResidualSum<T>& row, const T* weight, T* y) {
  const float squares = sum_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR {
    store(d, hn::Add(load_in_order(d, row.a + c), load_in_order(d, row.b + c)), row.sum + c);
    const auto v = load(d, row.sum + c);  // as it was rounded
    return hn::Mul(v, v);
  });
  return normalise_row<Streams, T>(shape, squares, row.sum, weight, y);
}

// `row`: one row on its way back, whose dx is added to what is there, or overwrites it. Adds to the thread's dweight.
template <bool adds, class T>
HWY_INLINE void backward_row(int64_t cols, const RmsNormGradient<T>& row, float* dweight) {
  const T *x = row.x, *dy = row.dy, *weight = row.weight;
  T* dx = row.dx;
  const float dot = sum_lanes(0, cols, [&](auto d, int64_t c) HWY_ATTR {
    return hn::Mul(hn::Mul(load_in_order(d, dy + c), load(d, weight + c)), load_in_order(d, x + c));
  });
  const float rstd = *row.rstd;
  const float pull = dot * rstd * rstd * rstd / static_cast<float>(cols);
  for_lanes(0, cols, [&](auto d, int64_t c) HWY_ATTR {
    const auto scaled = hn::Mul(load(d, dy + c), hn::Set(d, rstd)), input = load(d, x + c);
    auto push = hn::Zero(d);
    if constexpr (adds)
      push = hn::MulAdd(scaled, load(d, weight + c), load(d, dx + c));
    else
      push = hn::Mul(scaled, load(d, weight + c));
    store(d, hn::NegMulAdd(input, hn::Set(d, pull), push), dx + c);
    store(d, hn::MulAdd(scaled, input, load(d, dweight + c)), dweight + c);
  });
}

template <class T>
void forward(const RmsNormShape& shape, const T* x, const T* weight, T* y, float* rstd) {
  write_rows(y, shape.rows, shape.cols, [&](auto streams, int64_t r, int64_t at) HWY_ATTR {
    rstd[r] = forward_row<streams>(shape, x + at, weight, y + at);
  });
}

template <class T>
void add_forward(const RmsNormShape& shape, const ResidualSum<T>& s, const T* weight, T* y, float* rstd) {
  write_rows(y, shape.rows, shape.cols, [&](auto streams, int64_t r, int64_t at) HWY_ATTR {
    rstd[r] = add_forward_row<streams, T>(shape, {s.a + at, s.b + at, s.sum + at}, weight, y + at);
  });
}

template <class T>
void backward(const RmsNormShape& shape, const RmsNormGradient<T>& g) {
  ThreadSums dweight(shape.cols);
  dweight.visit_rows(shape.rows, [&](int64_t r, float* sums) HWY_ATTR {
    const int64_t at = r * shape.cols;
    backward_row<true, T>(shape.cols, {g.x + at, g.weight, g.rstd + r, g.dy + at, g.dx + at, nullptr}, sums);
  });
  dweight.add_to(0, shape.cols, g.dweight);
}

// The heads of one token.
template <class T>
void forward_heads(const HeadNormShape& shape, const T* x, const T* weight, T* y, float* rstd) {
  for (int64_t h = 0; h < shape.heads; ++h, x += shape.head_dim, y += shape.head_dim)
    rstd[h] = forward_row<false>({1, shape.head_dim, shape.eps}, x, weight, y);
}

template <class T>
void head_forward(const HeadNormShape& shape, const T* x, const T* weight, T* y, float* rstd) {
  parallel_rows(shape.rows, [&](int64_t r) {
    forward_heads(shape, x + r * shape.x_row_stride, weight, y + r * shape.y_row_stride, rstd + r * shape.heads);
  });
}

template <class T>
void backward_heads(const HeadNormShape& shape, RmsNormGradient<T> head, float* dweight) {
  for (int64_t h = 0; h < shape.heads; ++h) {
    backward_row<false>(shape.head_dim, head, dweight);
    head.x += shape.head_dim, head.dy += shape.head_dim, head.dx += shape.head_dim, head.rstd += 1;
  }
}

template <class T>
void head_backward(const HeadNormShape& shape, const RmsNormGradient<T>& g) {
  ThreadSums dweight(shape.head_dim);
  dweight.visit_rows(shape.rows, [&](int64_t r, float* sums) {
    const int64_t x = r * shape.x_row_stride, y = r * shape.y_row_stride;
    backward_heads<T>(shape, {g.x + x, g.weight, g.rstd + r * shape.heads, g.dy + y, g.dx + x, nullptr}, sums);
  });
  dweight.add_to(0, shape.head_dim, g.dweight);
}

void rmsnorm(OpsByFormat<RmsNormOps>& ops) {
  ops.set_fast([]<class T>(RmsNormOps<T>& fast) { fast = {forward<T>, add_forward<T>, backward<T>}; });
}
void head_norm(OpsByFormat<HeadNormOps>& ops) {
  ops.set_fast([]<class T>(HeadNormOps<T>& fast) { fast = {head_forward<T>, head_backward<T>}; });
}

}  // namespace HWY_NAMESPACE
}  // namespace tprimat::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat::engine {

HWY_EXPORT(rmsnorm);
HWY_EXPORT(head_norm);

void set_cpu_ops(OpsByFormat<RmsNormOps>& ops) {
  HWY_DYNAMIC_DISPATCH(rmsnorm)(ops);
  ops.f64 = {reference::rmsnorm_forward, reference::add_rmsnorm_forward, reference::rmsnorm_backward};
}
void set_cpu_ops(OpsByFormat<HeadNormOps>& ops) {
  HWY_DYNAMIC_DISPATCH(head_norm)(ops);
  ops.f64 = {reference::head_norm_forward, reference::head_norm_backward};
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
