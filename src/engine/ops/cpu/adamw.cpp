#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/adamw.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/op_table.h"
#include "ops/reference/adamw.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

template <bool Streams, class T>
void update(AdamwFactors f, const AdamwRange<T>& range, int64_t begin, int64_t end) {
  const auto keep = static_cast<float>(1.0 - f.learning_rate * range.weight_decay);
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    const auto g = hn::Mul(load_in_order(d, range.gradient + i), hn::Set(d, f.scale));
    const auto m =
        hn::MulAdd(hn::Set(d, f.rest1), g, hn::Mul(hn::Set(d, f.beta1), load_in_order(d, range.first_moment + i)));
    const auto v = hn::MulAdd(hn::Set(d, f.rest2), hn::Mul(g, g),
                              hn::Mul(hn::Set(d, f.beta2), load_in_order(d, range.second_moment + i)));
    const auto denominator = hn::MulAdd(hn::Sqrt(v), hn::Set(d, f.root), hn::Set(d, f.epsilon));
    const auto move = hn::Div(hn::Mul(m, hn::Set(d, f.rate)), denominator);
    const auto w = hn::MulSub(load_in_order(d, range.master + i), hn::Set(d, keep), move);
    store(d, m, range.first_moment + i);
    store(d, v, range.second_moment + i);
    store(d, w, range.master + i);
    // Exactly: as a training that is continued makes it from the master.
    if constexpr (Streams)
      stream_exactly(d, w, range.weight + i);
    else
      store_exactly(d, w, range.weight + i);
  });
  if constexpr (Streams) hwy::FlushStream();
}

// All weights are written before one is read again. Where the caches do not hold them all, they are stored past the
// caches; that takes aligned addresses.
template <class T>
bool can_stream(const T* weights, int64_t count) {
  return has_amx() && exceeds_caches(count * static_cast<int64_t>(sizeof(T))) && is_aligned(weights);
}

template <class T>
void update_all(const AdamwStep& step, std::span<const AdamwRange<T>> ranges) {
  const AdamwFactors factors(step);
  int64_t count = 0;
  for (const AdamwRange<T>& range : ranges) count += range.count;
  parallel_parts(ranges, [&](const AdamwRange<T>& range, int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<T, bf16>)
      if (can_stream(range.weight + begin, count)) return update<true>(factors, range, begin, end);
    update<false>(factors, range, begin, end);
  });
}

void adamw(OpsByFormat<AdamwOps>& ops) {
  ops.set_fast([]<class T>(AdamwOps<T>& fast) { fast = {update_all<T>}; });
}

}  // namespace HWY_NAMESPACE
}  // namespace tprimat::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat::engine {
namespace {

// Values [begin, end) of a range.
template <class T, class M>
void update_compact(const AdamwFactors& f, uint64_t key, const CompactAdamwRange<T, M>& range, int64_t begin,
                    int64_t end) {
  const auto keep = static_cast<float>(1.0 - f.learning_rate * range.weight_decay);
  for (int64_t i = begin; i < end; ++i) {
    const uint64_t bits = rounding_bits(key, range.first_value + i);
    const float g = range.gradient[i] * f.scale;
    const float m = f.rest1 * g + f.beta1 * widen(range.first_moment[i]);
    const float v = f.rest2 * (g * g) + f.beta2 * widen(range.second_moment[i]);
    const float w = range.master != nullptr ? range.master[i] : widen(range.weight[i]);
    const float moved = w * keep - m * f.rate / (std::sqrt(v) * f.root + f.epsilon);
    range.first_moment[i] = round_by_chance<M>(m, static_cast<uint32_t>(bits >> 16) & 0xFFFFu);
    range.second_moment[i] = round_by_chance<M>(v, static_cast<uint32_t>(bits >> 32) & 0xFFFFu);
    if (range.master != nullptr) range.master[i] = moved;
    range.weight[i] =
        range.master != nullptr ? narrow<T>(moved) : round_by_chance<T>(moved, static_cast<uint32_t>(bits) & 0xFFFFu);
  }
}

template <class T, class M>
void update_all_compact(const AdamwStep& step, uint64_t seed, std::span<const CompactAdamwRange<T, M>> ranges) {
  const AdamwFactors factors(step);
  const uint64_t key = rounding_key(seed, step.step);
  parallel_parts(ranges, [&](const CompactAdamwRange<T, M>& range, int64_t begin, int64_t end) {
    update_compact(factors, key, range, begin, end);
  });
}

}  // namespace

HWY_EXPORT(adamw);

void set_cpu_ops(OpsByFormat<AdamwOps>& ops) {
  HWY_DYNAMIC_DISPATCH(adamw)(ops);
  ops.f64 = {reference::adamw_update_all};
}

void set_cpu_ops(OpsByFormat<CompactAdamwOps>& ops) {
  ops.set_fast([]<class T>(CompactAdamwOps<T>& fast) { fast = {update_all_compact, update_all_compact}; });
  ops.f64 = {reference::adamw_update_compact, reference::adamw_update_compact};
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
