#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/fp8.cpp"
#include <hwy/foreach_target.h>

#include "ops/fp8.h"

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/reference/fp8.h"

#ifndef TPRIMAT_OPS_CPU_FP8_ARGS  // this file is compiled once per instruction set
#define TPRIMAT_OPS_CPU_FP8_ARGS
namespace tprimat::engine {
namespace {

struct RoundArgs {
  Fp8Format format;
  float scale, back;  // back = 1/scale
};

}  // namespace
}  // namespace tprimat::engine
#endif

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
void round_range(int64_t begin, int64_t end, const T* x, const RoundArgs& args, T* y) {
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    const auto scaled = hn::Mul(load(d, x + i), hn::Set(d, args.scale));
    store(d, hn::Mul(nearest(d, scaled, args.format), hn::Set(d, args.back)), y + i);
  });
}

#define TPRIMAT_KERNELS(T)                                                                                            \
  float largest_magnitude_##T(int64_t begin, int64_t end, const T* x) { return largest_magnitude<T>(begin, end, x); } \
  void round_range_##T(int64_t begin, int64_t end, const T* x, const RoundArgs& args, T* y) {                         \
    round_range<T>(begin, end, x, args, y);                                                                           \
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

template <class T, class Kernel>
float largest_of_all(int64_t count, const T* x, Kernel kernel) {
  std::vector<float> partial(static_cast<size_t>(thread_count()), 0.0f);
  parallel_ranges(count, [&](int64_t begin, int64_t end, int thread) {
    partial[static_cast<size_t>(thread)] = kernel(begin, end, x);
  });
  return *std::max_element(partial.begin(), partial.end());
}

}  // namespace

#define TPRIMAT_FP8(T)                                                                           \
  HWY_EXPORT(largest_magnitude_##T);                                                             \
  HWY_EXPORT(round_range_##T);                                                                   \
  template <>                                                                                    \
  float fp8_round<T>(int64_t count, const T* x, Fp8Format format, T* y) {                        \
    const float amax = largest_of_all(count, x, HWY_DYNAMIC_DISPATCH(largest_magnitude_##T));    \
    const float scale = reference::fp8_scale(amax, format);                                      \
    const RoundArgs args{format, scale, 1.0f / scale};                                           \
    const auto kernel = HWY_DYNAMIC_DISPATCH(round_range_##T);                                   \
    parallel_ranges(count, [&](int64_t begin, int64_t end) { kernel(begin, end, x, args, y); }); \
    return amax;                                                                                 \
  }
TPRIMAT_FP8(float)
TPRIMAT_FP8(bf16)
TPRIMAT_FP8(f16)
#undef TPRIMAT_FP8

template <>
double fp8_round<double>(int64_t count, const double* x, Fp8Format format, double* y) {
  return reference::fp8_round(count, x, format, y);
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
