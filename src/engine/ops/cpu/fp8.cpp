#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/fp8.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/op_table.h"
#include "ops/reference/fp8.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

template <class T>
float largest_magnitude(int64_t begin, int64_t end, const T* x) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  // A NaN is greater than nothing, so it does not count.
  const auto greater = [](auto a, auto b) HWY_ATTR { return hn::IfThenElse(hn::Gt(a, b), a, b); };
  auto largest = hn::Zero(d);
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) largest = greater(hn::Abs(load(d, x + i)), largest);
  float result = hn::GetLane(hn::MaxOfLanes(d, largest));
  for (; i < end; ++i) result = std::abs(widen(x[i])) > result ? std::abs(widen(x[i])) : result;
  return result;
}

// Adding and taking away 1.5·2^(23−m)·2^e leaves a value of [2^e, 2^(e+1)) rounded to m bits after the leading one, as
// the float unit rounds; below the least exponent the spacing stays.
template <class D>
HWY_INLINE hn::Vec<D> nearest(D d, hn::Vec<D> value, Fp8Format format) {
  const hn::RebindToUnsigned<D> bits;
  const int mantissa_bits = format == Fp8Format::e4m3 ? 3 : 2, least_exponent = format == Fp8Format::e4m3 ? -6 : -14;
  const auto largest = hn::Set(d, static_cast<float>(fp8_largest(format)));
  const auto magnitude = hn::Abs(value);
  const auto size = hn::IfThenElse(hn::Gt(magnitude, largest), largest, magnitude);  // keeps NaN
  const auto exponent = hn::And(hn::BitCast(bits, size), hn::Set(bits, 0x7F800000u));
  const auto kept = hn::Max(exponent, hn::Set(bits, static_cast<uint32_t>(127 + least_exponent) << 23));
  const auto unit = hn::BitCast(d, hn::Add(kept, hn::Set(bits, static_cast<uint32_t>(23 - mantissa_bits) << 23)));
  const auto magic = hn::Mul(unit, hn::Set(d, 1.5f));
  return hn::CopySignToAbs(hn::Sub(hn::Add(size, magic), magic), value);
}

template <class T>
float largest_of_all(int64_t count, const T* x) {
  std::vector<float> partial(static_cast<size_t>(thread_count()), 0.0f);
  parallel_ranges(count, [&](int64_t begin, int64_t end, int thread) {
    partial[static_cast<size_t>(thread)] = largest_magnitude(begin, end, x);
  });
  return *std::max_element(partial.begin(), partial.end());
}

template <class T>
void round_all(int64_t count, const T* x, Fp8Format format, T* y) {
  const float scale = reference::fp8_scale(largest_of_all(count, x), format), back = 1.0f / scale;
  parallel_ranges(count, [&](int64_t begin, int64_t end) HWY_ATTR {
    for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
      const auto scaled = hn::Mul(load(d, x + i), hn::Set(d, scale));
      store(d, hn::Mul(nearest(d, scaled, format), hn::Set(d, back)), y + i);
    });
  });
}

void fp8(OpsByFormat<Fp8Ops>& ops) {
  ops.set_fast([]<class T>(Fp8Ops<T>& fast) { fast = {round_all<T>}; });
}

}  // namespace HWY_NAMESPACE
}  // namespace tprimat::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat::engine {

HWY_EXPORT(fp8);

void set_cpu_ops(OpsByFormat<Fp8Ops>& ops) {
  HWY_DYNAMIC_DISPATCH(fp8)(ops);
  ops.f64 = {reference::fp8_round};
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
