#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/rope.cpp"
#include <hwy/foreach_target.h>

#include "ops/rope.h"

#include <hwy/highway.h>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/reference/rope.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

template <class T>
void turn_row(const RopeShape& shape, const RopeTable<const float>& table, float direction, T* row) {
  const int64_t half = shape.head_dim / 2;
  for (int64_t head = 0; head < shape.heads; ++head) {
    T* first = row + head * shape.head_dim;
    for_lanes(0, half, [&](auto d, int64_t i) HWY_ATTR {
      const auto a = load(d, first + i), b = load(d, first + i + half);
      const auto c = load(d, table.cosine + i), s = hn::Mul(load(d, table.sine + i), hn::Set(d, direction));
      store(d, hn::NegMulAdd(b, s, hn::Mul(a, c)), first + i);
      store(d, hn::MulAdd(a, s, hn::Mul(b, c)), first + i + half);
    });
  }
}

#define TPRIMAT_KERNELS(T)                                                                                  \
  void turn_row_##T(const RopeShape& shape, const RopeTable<const float>& table, float direction, T* row) { \
    turn_row<T>(shape, table, direction, row);                                                              \
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
void turn(const RopeShape& shape, const RopeTable<float>& table, int direction, T* heads, RowKernel kernel) {
  const int64_t half = shape.head_dim / 2;
  parallel_ranges(shape.batch * shape.sequence, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row % shape.sequence * half;
      kernel(shape, {table.cosine + at, table.sine + at}, static_cast<float>(direction),
             heads + row * shape.row_stride);
    }
  });
}

}  // namespace

#define TPRIMAT_ROPE(T)                                                                                   \
  HWY_EXPORT(turn_row_##T);                                                                               \
  template <>                                                                                             \
  void rope_in_place<T>(const RopeShape& shape, const RopeTable<float>& table, int direction, T* heads) { \
    turn(shape, table, direction, heads, HWY_DYNAMIC_DISPATCH(turn_row_##T));                             \
  }
TPRIMAT_ROPE(float)
TPRIMAT_ROPE(bf16)
TPRIMAT_ROPE(f16)
#undef TPRIMAT_ROPE

template <>
void rope_in_place<double>(const RopeShape& shape, const RopeTable<double>& table, int direction, double* heads) {
  reference::rope_in_place(shape, table, direction, heads);
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
