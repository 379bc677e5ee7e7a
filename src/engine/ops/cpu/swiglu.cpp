#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/swiglu.cpp"
#include <hwy/foreach_target.h>

#include "ops/swiglu.h"

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/reference/swiglu.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

template <class D>
HWY_INLINE hn::Vec<D> sigmoid(D d, hn::Vec<D> z) {
  const auto one = hn::Set(d, 1.0f);
  // e^88 is the largest power that a float holds; beyond it the sigmoid is 0 anyway.
  return hn::Div(one, hn::Add(one, hn::Exp(d, hn::Min(hn::Neg(z), hn::Set(d, 88.0f)))));
}

template <class T>
void forward_row(int64_t width, const T* gate_up, T* y) {
  for_lanes(0, width, [&](auto d, int64_t c) HWY_ATTR {
    const auto z = load(d, gate_up + c);
    store(d, hn::Mul(hn::Mul(z, sigmoid(d, z)), load(d, gate_up + width + c)), y + c);
  });
}

template <class T>
void backward_row(int64_t width, const T* gate_up, const T* dy, T* dgate_up) {
  for_lanes(0, width, [&](auto d, int64_t c) HWY_ATTR {
    const auto z = load(d, gate_up + c), up = load(d, gate_up + width + c), grad = load(d, dy + c);
    const auto s = sigmoid(d, z);
    const auto slope = hn::MulAdd(z, hn::Sub(hn::Set(d, 1.0f), s), hn::Set(d, 1.0f));
    store(d, hn::Mul(hn::Mul(grad, up), hn::Mul(s, slope)), dgate_up + c);
    store(d, hn::Mul(grad, hn::Mul(z, s)), dgate_up + width + c);
  });
}

#define TPRIMAT_KERNELS(T)                                                                           \
  void forward_row_##T(int64_t width, const T* gate_up, T* y) { forward_row<T>(width, gate_up, y); } \
  void backward_row_##T(int64_t width, const T* gate_up, const T* dy, T* dgate_up) {                 \
    backward_row<T>(width, gate_up, dy, dgate_up);                                                   \
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
void forward(const SwigluShape& shape, const T* gate_up, T* y, RowKernel kernel) {
  parallel_ranges(shape.rows, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) kernel(shape.width, gate_up + r * 2 * shape.width, y + r * shape.width);
  });
}

template <class T, class RowKernel>
void backward(const SwigluShape& shape, const T* gate_up, const T* dy, T* dgate_up, RowKernel kernel) {
  parallel_ranges(shape.rows, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t at = r * 2 * shape.width;
      kernel(shape.width, gate_up + at, dy + r * shape.width, dgate_up + at);
    }
  });
}

}  // namespace

#define TPRIMAT_SWIGLU(T)                                                                         \
  HWY_EXPORT(forward_row_##T);                                                                    \
  HWY_EXPORT(backward_row_##T);                                                                   \
  template <>                                                                                     \
  void swiglu_forward<T>(const SwigluShape& shape, const T* gate_up, T* y) {                      \
    forward(shape, gate_up, y, HWY_DYNAMIC_DISPATCH(forward_row_##T));                            \
  }                                                                                               \
  template <>                                                                                     \
  void swiglu_backward<T>(const SwigluShape& shape, const T* gate_up, const T* dy, T* dgate_up) { \
    backward(shape, gate_up, dy, dgate_up, HWY_DYNAMIC_DISPATCH(backward_row_##T));               \
  }
TPRIMAT_SWIGLU(float)
TPRIMAT_SWIGLU(bf16)
TPRIMAT_SWIGLU(f16)
#undef TPRIMAT_SWIGLU

template <>
void swiglu_forward<double>(const SwigluShape& shape, const double* gate_up, double* y) {
  reference::swiglu_forward(shape, gate_up, y);
}
template <>
void swiglu_backward<double>(const SwigluShape& shape, const double* gate_up, const double* dy, double* dgate_up) {
  reference::swiglu_backward(shape, gate_up, dy, dgate_up);
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
