#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/rope.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/op_table.h"
#include "ops/reference/rope.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

// Rows of queries and keys lie too far apart for the hardware prefetcher. Past the last row the address is outside the
// tensor; a prefetch does not fault.
constexpr int64_t k_rows_ahead = 2;
template <class T>
HWY_INLINE void prefetch_head(const T* head, int64_t head_dim) {
  constexpr int64_t k_line = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < head_dim; i += k_line) hwy::Prefetch(head + i);
}

template <class T>
void rotate_row(const RopeShape& shape, const RopeTable<const float>& table, float direction, T* row) {
  const int64_t half = shape.head_dim / 2;
  for (int64_t head = 0; head < shape.heads; ++head) {
    T* first = row + head * shape.head_dim;
    prefetch_head(first + k_rows_ahead * shape.row_stride, shape.head_dim);
    for_lanes(0, half, [&](auto d, int64_t i) HWY_ATTR {
      const auto a = load(d, first + i), b = load(d, first + i + half);
      const auto c = load(d, table.cosine + i), s = hn::Mul(load(d, table.sine + i), hn::Set(d, direction));
      store(d, hn::NegMulAdd(b, s, hn::Mul(a, c)), first + i);
      store(d, hn::MulAdd(a, s, hn::Mul(b, c)), first + i + half);
    });
  }
}

template <class T>
void rotate(const RopeShape& shape, const RopeTable<float>& table, int direction, T* heads) {
  parallel_rows(shape.batch * shape.sequence, [&](int64_t row) {
    const int64_t at = row % shape.sequence * (shape.head_dim / 2);
    rotate_row(shape, {table.cosine + at, table.sine + at}, static_cast<float>(direction),
               heads + row * shape.row_stride);
  });
}

void rope(OpsByFormat<RopeOps>& ops) {
  ops.set_fast([]<class T>(RopeOps<T>& fast) { fast = {rotate<T>}; });
}

}  // namespace HWY_NAMESPACE
}  // namespace tprimat::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat::engine {

HWY_EXPORT(rope);

void set_cpu_ops(OpsByFormat<RopeOps>& ops) {
  HWY_DYNAMIC_DISPATCH(rope)(ops);
  ops.f64 = {reference::rope_in_place};
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
