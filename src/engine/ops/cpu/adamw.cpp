#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/adamw.cpp"
#include <hwy/foreach_target.h>

#include "ops/adamw.h"

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/reference/adamw.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

template <class T>
void update(const AdamwStep& s, const AdamwRange<T>& range, int64_t begin, int64_t end) {
  const auto beta1 = static_cast<float>(s.beta1), beta2 = static_cast<float>(s.beta2);
  const auto rest1 = static_cast<float>(1.0 - s.beta1), rest2 = static_cast<float>(1.0 - s.beta2);
  // lr·m̂/(√v̂ + ε) = (lr/c1)·m / (√v/√c2 + ε)
  const auto rate = static_cast<float>(s.learning_rate / (1.0 - std::pow(s.beta1, static_cast<double>(s.step))));
  const auto root = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(s.beta2, static_cast<double>(s.step))));
  const auto keep = static_cast<float>(1.0 - s.learning_rate * range.weight_decay);
  const auto epsilon = static_cast<float>(s.epsilon), scale = static_cast<float>(s.gradient_scale);
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    const auto g = hn::Mul(load(d, range.gradient + i), hn::Set(d, scale));
    const auto m = hn::MulAdd(hn::Set(d, rest1), g, hn::Mul(hn::Set(d, beta1), load(d, range.first_moment + i)));
    const auto v =
        hn::MulAdd(hn::Set(d, rest2), hn::Mul(g, g), hn::Mul(hn::Set(d, beta2), load(d, range.second_moment + i)));
    const auto denominator = hn::MulAdd(hn::Sqrt(v), hn::Set(d, root), hn::Set(d, epsilon));
    const auto move = hn::Div(hn::Mul(m, hn::Set(d, rate)), denominator);
    const auto w = hn::MulSub(load(d, range.master + i), hn::Set(d, keep), move);
    store(d, m, range.first_moment + i);
    store(d, v, range.second_moment + i);
    store(d, w, range.master + i);
    store(d, w, range.weight + i);
  });
}

#define TPRIMAT_KERNELS(T)                                                                      \
  void update_##T(const AdamwStep& s, const AdamwRange<T>& range, int64_t begin, int64_t end) { \
    update<T>(s, range, begin, end);                                                            \
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

constexpr int64_t k_grain = 64;  // elements; threads begin at multiples of it

// The part [begin, end) of all ranges put one after the other.
template <class T, class Kernel>
void update_part(const AdamwStep& step, std::span<const AdamwRange<T>> ranges, int64_t begin, int64_t end,
                 Kernel kernel) {
  int64_t first = 0;  // where the range begins among all
  for (const AdamwRange<T>& range : ranges) {
    const int64_t from = std::max<int64_t>(begin - first, 0), to = std::min(end - first, range.count);
    if (from < to) kernel(step, range, from, to);
    first += range.count;
    if (first >= end) return;
  }
}

template <class T, class Kernel>
void update_all(const AdamwStep& step, std::span<const AdamwRange<T>> ranges, Kernel kernel) {
  int64_t total = 0;
  for (const AdamwRange<T>& range : ranges) total += range.count;
  parallel_ranges((total + k_grain - 1) / k_grain, [&](int64_t begin, int64_t end) {
    update_part(step, ranges, begin * k_grain, std::min(end * k_grain, total), kernel);
  });
}

}  // namespace

#define TPRIMAT_ADAMW(T)                                                                   \
  HWY_EXPORT(update_##T);                                                                  \
  template <>                                                                              \
  void adamw_update_all<T>(const AdamwStep& step, std::span<const AdamwRange<T>> ranges) { \
    update_all(step, ranges, HWY_DYNAMIC_DISPATCH(update_##T));                            \
  }
TPRIMAT_ADAMW(float)
TPRIMAT_ADAMW(bf16)
TPRIMAT_ADAMW(f16)
#undef TPRIMAT_ADAMW

template <>
void adamw_update_all<double>(const AdamwStep& step, std::span<const AdamwRange<double>> ranges) {
  reference::adamw_update_all(step, ranges);
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
