#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/rope.cpp"
#include <hwy/foreach_target.h>

#include "ops/rope.h"

#include <hwy/highway.h>

#include <cmath>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/reference/rope.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat {
namespace HWY_NAMESPACE {

template <class T>
void turn_row(const RopeShape& shape, const float* cosine, const float* sine, float direction, T* row) {
  const int64_t half = shape.head_dim / 2;
  for (int64_t head = 0; head < shape.heads; ++head) {
    T* first = row + head * shape.head_dim;
    for_lanes(0, half, [&](auto d, int64_t i) HWY_ATTR {
      const auto a = load(d, first + i), b = load(d, first + i + half);
      const auto c = load(d, cosine + i), s = hn::Mul(load(d, sine + i), hn::Set(d, direction));
      store(d, hn::NegMulAdd(b, s, hn::Mul(a, c)), first + i);
      store(d, hn::MulAdd(a, s, hn::Mul(b, c)), first + i + half);
    });
  }
}

void turn_row_float(const RopeShape& shape, const float* cosine, const float* sine, float direction, float* row) {
  turn_row(shape, cosine, sine, direction, row);
}
void turn_row_bf16(const RopeShape& shape, const float* cosine, const float* sine, float direction, bf16* row) {
  turn_row(shape, cosine, sine, direction, row);
}

}  // namespace HWY_NAMESPACE
}  // namespace tprimat
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat {
namespace {

HWY_EXPORT(turn_row_float);
HWY_EXPORT(turn_row_bf16);

template <class T, class RowKernel>
void turn(const RopeShape& shape, const RopeTable<float>& table, int direction, T* heads, RowKernel kernel) {
  const int64_t half = shape.head_dim / 2;
  parallel_ranges(shape.batch * shape.sequence, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row % shape.sequence * half;
      kernel(shape, table.cosine + at, table.sine + at, static_cast<float>(direction), heads + row * shape.row_stride);
    }
  });
}

template <class A>
void fill(int64_t sequence, int64_t head_dim, double theta, const RopeTable<A>& table) {
  const int64_t half = head_dim / 2;
  for (int64_t t = 0; t < sequence; ++t) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(t) * std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
      table.cosine[t * half + i] = static_cast<A>(std::cos(angle));
      table.sine[t * half + i] = static_cast<A>(std::sin(angle));
    }
  }
}

}  // namespace

template <>
void fill_rope_table<float>(int64_t sequence, int64_t head_dim, double theta, const RopeTable<float>& table) {
  fill(sequence, head_dim, theta, table);
}
template <>
void fill_rope_table<double>(int64_t sequence, int64_t head_dim, double theta, const RopeTable<double>& table) {
  fill(sequence, head_dim, theta, table);
}

template <>
void rope_in_place<float>(const RopeShape& shape, const RopeTable<float>& table, int direction, float* heads) {
  turn(shape, table, direction, heads, HWY_DYNAMIC_DISPATCH(turn_row_float));
}
template <>
void rope_in_place<bf16>(const RopeShape& shape, const RopeTable<float>& table, int direction, bf16* heads) {
  turn(shape, table, direction, heads, HWY_DYNAMIC_DISPATCH(turn_row_bf16));
}
template <>
void rope_in_place<double>(const RopeShape& shape, const RopeTable<double>& table, int direction, double* heads) {
  reference::rope_in_place(shape, table, direction, heads);
}

}  // namespace tprimat
#endif  // HWY_ONCE
