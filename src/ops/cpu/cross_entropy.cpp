#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/cross_entropy.cpp"
#include <hwy/foreach_target.h>

#include "ops/cross_entropy.h"

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/reference/cross_entropy.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat {
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
    const auto logits = hn::LoadU(d, row + i);
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

// Leaves e^(logit − largest) in the row, so that the exponential is taken once.
inline float exponentiate(float* row, int64_t count, float largest) {
  return sum_lanes(0, count, [&](auto d, int64_t v) HWY_ATTR {
    const auto power = hn::Exp(d, hn::Sub(load(d, row + v), hn::Set(d, largest)));
    store(d, power, row + v);
    return power;
  });
}

template <class T>
void visit_row(const CrossEntropyShape& shape, const CrossEntropyArgs<T>& args, int64_t r) {
  float* row = args.logits + r * shape.vocab;
  T* gradient = args.dlogits + r * shape.vocab;
  const int32_t target = args.targets[r];
  const float largest = largest_of(row, shape.vocab);
  const float target_logit = row[target];
  const float sum = exponentiate(row, shape.vocab, largest);
  args.losses[r] = std::log(sum) + largest - target_logit;
  const auto scale = static_cast<float>(args.gradient_scale);
  const float at_target = (row[target] / sum - 1.0f) * scale;
  const float factor = scale / sum;
  for_lanes(0, shape.vocab,
            [&](auto d, int64_t v) HWY_ATTR { store(d, hn::Mul(load(d, row + v), hn::Set(d, factor)), gradient + v); });
  gradient[target] = narrow<T>(at_target);
}

void visit_row_float(const CrossEntropyShape& shape, const CrossEntropyArgs<float>& args, int64_t r) {
  visit_row(shape, args, r);
}
void visit_row_bf16(const CrossEntropyShape& shape, const CrossEntropyArgs<bf16>& args, int64_t r) {
  visit_row(shape, args, r);
}

}  // namespace HWY_NAMESPACE
}  // namespace tprimat
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat {
namespace {

HWY_EXPORT(visit_row_float);
HWY_EXPORT(visit_row_bf16);

template <class T, class RowKernel>
void visit(const CrossEntropyShape& shape, const CrossEntropyArgs<T>& args, RowKernel kernel) {
  parallel_ranges(shape.rows, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) kernel(shape, args, r);
  });
}

}  // namespace

template <>
void cross_entropy<float>(const CrossEntropyShape& shape, const CrossEntropyArgs<float>& args) {
  visit(shape, args, HWY_DYNAMIC_DISPATCH(visit_row_float));
}
template <>
void cross_entropy<bf16>(const CrossEntropyShape& shape, const CrossEntropyArgs<bf16>& args) {
  visit(shape, args, HWY_DYNAMIC_DISPATCH(visit_row_bf16));
}
template <>
void cross_entropy<double>(const CrossEntropyShape& shape, const CrossEntropyArgs<double>& args) {
  reference::cross_entropy(shape, args);
}

}  // namespace tprimat
#endif  // HWY_ONCE
