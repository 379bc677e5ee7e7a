#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/adamw.cpp"
#include <hwy/foreach_target.h>

#include "ops/adamw.h"

#include <hwy/highway.h>

#include <cmath>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/reference/adamw.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat {
namespace HWY_NAMESPACE {

template <class T>
void update(const AdamwStep& s, const AdamwRange<T>& range, int64_t begin, int64_t end) {
  const auto beta1 = static_cast<float>(s.beta1), beta2 = static_cast<float>(s.beta2);
  const auto rest1 = static_cast<float>(1.0 - s.beta1), rest2 = static_cast<float>(1.0 - s.beta2);
  // lr·m̂/(√v̂ + ε) = (lr/c1)·m / (√v/√c2 + ε)
  const auto rate = static_cast<float>(s.learning_rate / (1.0 - std::pow(s.beta1, static_cast<double>(s.step))));
  const auto root = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(s.beta2, static_cast<double>(s.step))));
  const auto keep = static_cast<float>(1.0 - s.learning_rate * s.weight_decay);
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

void update_float(const AdamwStep& s, const AdamwRange<float>& range, int64_t begin, int64_t end) {
  update(s, range, begin, end);
}
void update_bf16(const AdamwStep& s, const AdamwRange<bf16>& range, int64_t begin, int64_t end) {
  update(s, range, begin, end);
}

}  // namespace HWY_NAMESPACE
}  // namespace tprimat
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat {
namespace {

HWY_EXPORT(update_float);
HWY_EXPORT(update_bf16);

}  // namespace

template <>
void adamw_update<float>(const AdamwStep& step, const AdamwRange<float>& range) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(update_float);
  parallel_ranges(range.count, [&](int64_t begin, int64_t end, int) { kernel(step, range, begin, end); });
}
template <>
void adamw_update<bf16>(const AdamwStep& step, const AdamwRange<bf16>& range) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(update_bf16);
  parallel_ranges(range.count, [&](int64_t begin, int64_t end, int) { kernel(step, range, begin, end); });
}
template <>
void adamw_update<double>(const AdamwStep& step, const AdamwRange<double>& range) {
  reference::adamw_update(step, range);
}

}  // namespace tprimat
#endif  // HWY_ONCE
