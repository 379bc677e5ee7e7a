#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/layernorm.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <cmath>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/cpu/thread_sums.h"
#include "ops/op_table.h"
#include "ops/reference/layernorm.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

struct RowStatistics {
  float mean, rstd;
};

// Writes y = (x − mean) · rstd · weight + bias, past the caches if `Streams`, given Σ x.
template <bool Streams, class T>
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
    put<Streams>(d, hn::MulAdd(normal, load(d, w.weight + c), load(d, w.bias + c)), y + c);
  });
  return {mean, rstd};
}

template <bool Streams, class T>
RowStatistics forward_row(const LayerNormShape& shape, const T* x, const LayerNormWeights<T>& w, T* y) {
  const float sum = sum_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR { return load(d, x + c); });
  return normalise_row<Streams>(shape, sum, x, w, y);
}

template <bool Streams, class T>
RowStatistics add_forward_row(const LayerNormShape& shape, const ResidualSum<T>& s, const LayerNormWeights<T>& w,
                              T* y) {
  const float sum = sum_lanes(0, shape.cols, [&](auto d, int64_t c) HWY_ATTR {
    store(d, hn::Add(load_in_order(d, s.a + c), load_in_order(d, s.b + c)), s.sum + c);
    return load(d, s.sum + c);  // as it was rounded
  });
  return normalise_row<Streams, T>(shape, sum, s.sum, w, y);
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

// normalise(streams, element at which a row begins, its y) for each row.
template <class T, class Normalise>
void forward_rows(const LayerNormShape& shape, const LayerNormOutput<T>& out, const Normalise& normalise) {
  write_rows(out.y, shape.rows, shape.cols, [&](auto streams, int64_t r, int64_t at) {
    const RowStatistics row = normalise(streams, at, out.y + at);
    out.mean[r] = row.mean;
    out.rstd[r] = row.rstd;
  });
}

template <class T>
void forward(const LayerNormShape& shape, const T* x, const LayerNormWeights<T>& w, const LayerNormOutput<T>& out) {
  forward_rows(shape, out, [&](auto streams, int64_t at, T* y) { return forward_row<streams>(shape, x + at, w, y); });
}

template <class T>
void add_forward(const LayerNormShape& shape, const ResidualSum<T>& s, const LayerNormWeights<T>& w,
                 const LayerNormOutput<T>& out) {
  forward_rows(shape, out, [&](auto streams, int64_t at, T* y) {
    return add_forward_row<streams, T>(shape, {s.a + at, s.b + at, s.sum + at}, w, y);
  });
}

template <class T>
void backward(const LayerNormShape& shape, const LayerNormGradient<T>& g) {
  ThreadSums sums(2 * shape.cols);
  sums.visit_rows(shape.rows, [&](int64_t r, float* own) { backward_row(shape, g, r, own); });
  sums.add_to(0, shape.cols, g.dweight);
  sums.add_to(shape.cols, shape.cols, g.dbias);
}

void layernorm(OpsByFormat<LayerNormOps>& ops) {
  ops.set_fast([]<class T>(LayerNormOps<T>& fast) { fast = {forward<T>, add_forward<T>, backward<T>}; });
}

}  // namespace HWY_NAMESPACE
}  // namespace tprimat::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat::engine {

HWY_EXPORT(layernorm);

void set_cpu_ops(OpsByFormat<LayerNormOps>& ops) {
  HWY_DYNAMIC_DISPATCH(layernorm)(ops);
  ops.f64 = {reference::layernorm_forward, reference::add_layernorm_forward, reference::layernorm_backward};
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
