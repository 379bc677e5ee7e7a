#include "ops/adamw_compact.h"

#include <algorithm>
#include <cmath>

#include "device/parallel.h"
#include "ops/reference/adamw_compact.h"

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
  int64_t total = 0;
  for (const auto& range : ranges) total += range.count;
  parallel_ranges(total, [&](int64_t begin, int64_t end) {
    int64_t first = 0;  // where the range begins among all
    for (const auto& range : ranges) {
      const int64_t from = std::max<int64_t>(begin - first, 0), to = std::min(end - first, range.count);
      if (from < to) update_compact(factors, key, range, from, to);
      first += range.count;
    }
  });
}

}  // namespace

#define TPRIMAT_COMPACT_ADAMW(T, M)                                                  \
  template <>                                                                        \
  void adamw_update_compact<T, M>(const AdamwStep& step, uint64_t seed,              \
                                  std::span<const CompactAdamwRange<T, M>> ranges) { \
    update_all_compact(step, seed, ranges);                                          \
  }
TPRIMAT_COMPACT_ADAMW(float, float)
TPRIMAT_COMPACT_ADAMW(float, bf16)
TPRIMAT_COMPACT_ADAMW(bf16, float)
TPRIMAT_COMPACT_ADAMW(bf16, bf16)
TPRIMAT_COMPACT_ADAMW(f16, float)
TPRIMAT_COMPACT_ADAMW(f16, bf16)
#undef TPRIMAT_COMPACT_ADAMW

template <>
void adamw_update_compact<double, double>(const AdamwStep& step, uint64_t seed,
                                          std::span<const CompactAdamwRange<double, double>> ranges) {
  reference::adamw_update_compact(step, seed, ranges);
}
template <>
void adamw_update_compact<double, bf16>(const AdamwStep& step, uint64_t seed,
                                        std::span<const CompactAdamwRange<double, bf16>> ranges) {
  reference::adamw_update_compact(step, seed, ranges);
}

}  // namespace tprimat::engine
