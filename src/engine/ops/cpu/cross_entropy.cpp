#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/cross_entropy.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/op_table.h"
#include "ops/reference/cross_entropy.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

// The vector maximum and exponential drop NaN, so a NaN among the logits is looked for and returned as the largest: it
// then reaches the loss.
inline float largest_of(const float* row, int64_t count) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto largest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto poison = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto logits = load_in_order(d, row + i);
    largest = hn::Max(largest, logits);
    poison = hn::MulAdd(logits, hn::Zero(d), poison);
  }
  float result = hn::GetLane(hn::MaxOfLanes(d, largest)), spoiled = hn::GetLane(hn::SumOfLanes(d, poison));
  for (; i < count; ++i) {
    result = row[i] > result ? row[i] : result;
    spoiled += row[i] * 0.0f;
  }
  return std::isnan(spoiled) ? spoiled : result;
}

// Leaves e^(logit − largest) in the row, so that the exponential is taken once. Meanwhile `next` comes to the cache.
inline float exponentiate(float* row, int64_t count, float largest, const float* next) {
  return sum_lanes(0, count, [&](auto d, int64_t v) HWY_ATTR {
    const auto power = exponential(d, hn::Sub(load(d, row + v), hn::Set(d, largest)));
    store(d, power, row + v);
    fetch(next + v);
    return power;
  });
}

// The longest row that is prefetched: a second-level cache of 1 MB holds it beside the one before it.
constexpr int64_t k_longest_fetched = 64 * 1024;

template <class T>
void visit_row(const CrossEntropyShape& shape, const CrossEntropyArgs<T>& args, int64_t r) {
  float* row = args.logits + shape.row(r);
  T* gradient = args.dlogits + shape.gradient_row(r);  // perhaps over the row: written behind what is read
  const int32_t target = args.targets[r];
  const float largest = largest_of(row, shape.vocab);
  const float target_logit = row[target];
  const bool next_fits = shape.vocab <= k_longest_fetched;
  const float sum = exponentiate(row, shape.vocab, largest, next_fits ? args.logits + shape.row(r + 1) : row);
  args.losses[r] = std::log(sum) + largest - target_logit;
  const auto scale = static_cast<float>(args.gradient_scale);
  const float at_target = (row[target] / sum - 1.0f) * scale;
  const float factor = scale / sum;
  for_lanes(0, shape.vocab,
            [&](auto d, int64_t v) HWY_ATTR { store(d, hn::Mul(load(d, row + v), hn::Set(d, factor)), gradient + v); });
  gradient[target] = narrow<T>(at_target);
}

void statistics_row(const CrossEntropyShape& shape, const float* row, float& largest, float& sum) {
  largest = largest_of(row, shape.vocab);
  const float powers = sum_lanes(0, shape.vocab, [&](auto d, int64_t v) HWY_ATTR {
    return exponential(d, hn::Sub(load(d, row + v), hn::Set(d, largest)));
  });
  sum = std::isnan(largest) ? largest : powers;
}

template <class T>
void gradient_row(const CrossEntropyShape& shape, const CrossEntropyShardArgs<T>& args, int64_t r) {
  const float* row = args.logits + shape.row(r);
  T* gradient = args.dlogits + shape.gradient_row(r);  // perhaps over the row: written behind what is read
  const int32_t target = args.targets[r];
  const float largest = args.whole.largest[r], sum = args.whole.sum[r];
  args.losses[r] = std::log(sum) + largest - args.whole.target_logit[r];
  const auto scale = static_cast<float>(args.gradient_scale);
  const float at_target = target >= 0 ? (std::exp(row[target] - largest) / sum - 1.0f) * scale : 0.0f;
  const float factor = scale / sum;
  for_lanes(0, shape.vocab, [&](auto d, int64_t v) HWY_ATTR {
    const auto power = exponential(d, hn::Sub(load(d, row + v), hn::Set(d, largest)));
    store(d, hn::Mul(power, hn::Set(d, factor)), gradient + v);
  });
  if (target >= 0) gradient[target] = narrow<T>(at_target);
}

template <class T>
void find_losses(const CrossEntropyShape& shape, const CrossEntropyArgs<T>& args) {
  parallel_rows(shape.rows, [&](int64_t r) { visit_row(shape, args, r); });
}

template <class T>
void find_gradient(const CrossEntropyShape& shape, const CrossEntropyShardArgs<T>& args) {
  parallel_rows(shape.rows, [&](int64_t r) { gradient_row(shape, args, r); });
}

void find_statistics(const CrossEntropyShape& shape, const float* logits, const int32_t* targets,
                     const CrossEntropyStatistics<float>& s) {
  parallel_rows(shape.rows, [&](int64_t r) {
    const float* row = logits + shape.row(r);
    statistics_row(shape, row, s.largest[r], s.sum[r]);
    s.target_logit[r] = targets[r] >= 0 ? row[targets[r]] : 0.0f;
  });
}

void cross_entropy(OpsByFormat<CrossEntropyOps>& ops) {
  ops.set_fast([]<class T>(CrossEntropyOps<T>& fast) {
    fast = {find_losses<T>, find_statistics, reference::rescale_exponential_sums, find_gradient<T>};
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tprimat::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat::engine {

HWY_EXPORT(cross_entropy);

void set_cpu_ops(OpsByFormat<CrossEntropyOps>& ops) {
  HWY_DYNAMIC_DISPATCH(cross_entropy)(ops);
  ops.f64 = {reference::cross_entropy, reference::cross_entropy_statistics, reference::rescale_exponential_sums,
             reference::cross_entropy_gradient};
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
