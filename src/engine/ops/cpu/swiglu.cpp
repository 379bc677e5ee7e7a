#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/swiglu.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/op_table.h"
#include "ops/reference/swiglu.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

// s = 1/(1 + e^−z), as precise as T, and 1 − s = e^−z·s, which loses nothing where s is close to 1.
template <class T, class D>
struct Sigmoid {
  Sigmoid(D d, hn::Vec<D> z) {
    // The largest power that a float holds: beyond it, the sigmoid stays at e^−88.
    const auto power = exponential(d, hn::Min(hn::Neg(z), hn::Set(d, 88.0f)));
    value = reciprocal<T>(d, hn::Add(hn::Set(d, 1.0f), power));
    rest = hn::Mul(power, value);
  }
  hn::Vec<D> value, rest;
};

template <class T>
void forward_row(int64_t width, const T* gate_up, T* y) {
  for_lanes(0, width, [&](auto d, int64_t c) HWY_ATTR {
    const auto z = load(d, gate_up + c);
    store(d, hn::Mul(hn::Mul(z, Sigmoid<T, decltype(d)>(d, z).value), load(d, gate_up + width + c)), y + c);
  });
}

template <class T>
void backward_row(int64_t width, const T* gate_up, const T* dy, T* dgate_up) {
  for_lanes(0, width, [&](auto d, int64_t c) HWY_ATTR {
    const auto z = load(d, gate_up + c), up = load(d, gate_up + width + c), grad = load(d, dy + c);
    const Sigmoid<T, decltype(d)> s(d, z);
    const auto slope = hn::MulAdd(z, s.rest, hn::Set(d, 1.0f));
    store(d, hn::Mul(hn::Mul(grad, up), hn::Mul(s.value, slope)), dgate_up + c);
    store(d, hn::Mul(grad, hn::Mul(z, s.value)), dgate_up + width + c);
  });
}

template <class T>
void forward(const SwigluShape& shape, const T* gate_up, T* y) {
  parallel_rows(shape.rows,
                [&](int64_t r) { forward_row(shape.width, gate_up + r * 2 * shape.width, y + r * shape.width); });
}

template <class T>
void backward(const SwigluShape& shape, const T* gate_up, const T* dy, T* dgate_up) {
  parallel_rows(shape.rows, [&](int64_t r) {
    const int64_t at = r * 2 * shape.width;
    backward_row(shape.width, gate_up + at, dy + r * shape.width, dgate_up + at);
  });
}

void swiglu(OpsByFormat<SwigluOps>& ops) {
  ops.set_fast([]<class T>(SwigluOps<T>& fast) { fast = {forward<T>, backward<T>}; });
}

}  // namespace HWY_NAMESPACE
}  // namespace tprimat::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat::engine {

HWY_EXPORT(swiglu);

void set_cpu_ops(OpsByFormat<SwigluOps>& ops) {
  HWY_DYNAMIC_DISPATCH(swiglu)(ops);
  ops.f64 = {reference::swiglu_forward, reference::swiglu_backward};
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
