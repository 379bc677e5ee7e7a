#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/gelu.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/cpu/thread_sums.h"
#include "ops/op_table.h"
#include "ops/reference/gelu.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

constexpr float k_root = 1.5957691216f;  // 2·√(2/π)
constexpr float k_cubic = 0.044715f;

// gelu(z) = z·s with s = (1 + tanh u)/2 = 1/(1 + e^−2u), which loses nothing where tanh is close to −1.
template <class T, class D>
struct GeluParts {
  GeluParts(D d, hn::Vec<D> z) {
    const auto one = hn::Set(d, 1.0f);
    square = hn::Mul(z, z);
    const auto twice_u = hn::Mul(hn::Mul(z, hn::Set(d, k_root)), hn::MulAdd(square, hn::Set(d, k_cubic), one));
    // e^87 is close to the largest power whose inverse is still a normal float; beyond it gelu is 0 anyway.
    power = exponential(d, hn::Min(hn::Neg(twice_u), hn::Set(d, 87.0f)));
    sigmoid = reciprocal<T>(d, hn::Add(one, power));
  }
  hn::Vec<D> square, power, sigmoid;  // z², e^−2u, s as precise as T
};

template <class D, class T>
HWY_INLINE hn::Vec<D> biased(D d, const T* x, const T* bias, int64_t c) {
  return bias != nullptr ? hn::Add(load(d, x + c), load(d, bias + c)) : load(d, x + c);
}

template <class T>
void forward_row(int64_t width, const T* x, const T* bias, T* y) {
  for_lanes(0, width, [&](auto d, int64_t c) HWY_ATTR {
    const auto z = biased(d, x, bias, c);
    store(d, hn::Mul(z, GeluParts<T, decltype(d)>(d, z).sigmoid), y + c);
  });
}

// d gelu/dz = s + z·s·(1 − s)·2u',  1 − s = e^−2u·s,  2u' = 2√(2/π)·(1 + 3·0.044715·z²)
template <class T>
void backward_row(int64_t width, const BiasGeluGradient<T>& row, float* dbias) {
  for_lanes(0, width, [&](auto d, int64_t c) HWY_ATTR {
    const auto z = biased(d, row.x, row.bias, c);
    const GeluParts<T, decltype(d)> parts(d, z);
    const auto inner = hn::MulAdd(parts.square, hn::Set(d, 3 * k_cubic * k_root), hn::Set(d, k_root));
    const auto rest = hn::Mul(parts.power, parts.sigmoid);
    const auto slope = hn::Mul(parts.sigmoid, hn::MulAdd(hn::Mul(z, rest), inner, hn::Set(d, 1.0f)));
    const auto gradient = hn::Mul(load(d, row.dy + c), slope);
    if (dbias != nullptr) store(d, hn::Add(load(d, dbias + c), gradient), dbias + c);
    store(d, gradient, row.dx + c);
  });
}

template <class T>
void forward(const GeluShape& shape, const T* x, const T* bias, T* y) {
  parallel_rows(shape.rows,
                [&](int64_t r) { forward_row(shape.width, x + r * shape.width, bias, y + r * shape.width); });
}

template <class T>
void backward(const GeluShape& shape, const BiasGeluGradient<T>& g) {
  ThreadSums dbias(g.dbias != nullptr ? shape.width : 0);
  dbias.visit_rows(shape.rows, [&](int64_t r, float* sums) {
    const int64_t at = r * shape.width;
    backward_row<T>(shape.width, {g.x + at, g.bias, g.dy + at, g.dx + at, nullptr},
                    g.dbias != nullptr ? sums : nullptr);
  });
  if (g.dbias != nullptr) dbias.add_to(0, shape.width, g.dbias);
}

void gelu(OpsByFormat<GeluOps>& ops) {
  ops.set_fast([]<class T>(GeluOps<T>& fast) { fast = {forward<T>, backward<T>}; });
}

}  // namespace HWY_NAMESPACE
}  // namespace tprimat::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat::engine {

HWY_EXPORT(gelu);

void set_cpu_ops(OpsByFormat<GeluOps>& ops) {
  HWY_DYNAMIC_DISPATCH(gelu)(ops);
  ops.f64 = {reference::bias_gelu_forward, reference::bias_gelu_backward};
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
