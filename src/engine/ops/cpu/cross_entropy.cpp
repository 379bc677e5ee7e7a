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
  float* row = args.logits + shape.row(r);
  T* gradient = args.dlogits + shape.gradient_row(r);  // perhaps over the row: written behind what is read
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

void statistics_row(const CrossEntropyShape& shape, const float* row, float& largest, float& sum) {
  largest = largest_of(row, shape.vocab);
  const float powers = sum_lanes(0, shape.vocab, [&](auto d, int64_t v) HWY_ATTR {
    return hn::Exp(d, hn::Sub(load(d, row + v), hn::Set(d, largest)));
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
    const auto power = hn::Exp(d, hn::Sub(load(d, row + v), hn::Set(d, largest)));
    store(d, hn::Mul(power, hn::Set(d, factor)), gradient + v);
  });
  if (target >= 0) gradient[target] = narrow<T>(at_target);
}

#define TPRIMAT_KERNELS(T)                                                                                 \
  void visit_row_##T(const CrossEntropyShape& shape, const CrossEntropyArgs<T>& args, int64_t r) {         \
    visit_row<T>(shape, args, r);                                                                          \
  }                                                                                                        \
  void gradient_row_##T(const CrossEntropyShape& shape, const CrossEntropyShardArgs<T>& args, int64_t r) { \
    gradient_row<T>(shape, args, r);                                                                       \
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

HWY_EXPORT(statistics_row);

template <class Args, class RowKernel>
void visit(const CrossEntropyShape& shape, const Args& args, RowKernel kernel) {
  parallel_ranges(shape.rows, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) kernel(shape, args, r);
  });
}

}  // namespace

#define TPRIMAT_CROSS_ENTROPY(T)                                                                         \
  HWY_EXPORT(visit_row_##T);                                                                             \
  HWY_EXPORT(gradient_row_##T);                                                                          \
  template <>                                                                                            \
  void cross_entropy<T>(const CrossEntropyShape& shape, const CrossEntropyArgs<T>& args) {               \
    visit(shape, args, HWY_DYNAMIC_DISPATCH(visit_row_##T));                                             \
  }                                                                                                      \
  template <>                                                                                            \
  void cross_entropy_gradient<T>(const CrossEntropyShape& shape, const CrossEntropyShardArgs<T>& args) { \
    visit(shape, args, HWY_DYNAMIC_DISPATCH(gradient_row_##T));                                          \
  }
TPRIMAT_CROSS_ENTROPY(float)
TPRIMAT_CROSS_ENTROPY(bf16)
TPRIMAT_CROSS_ENTROPY(f16)
#undef TPRIMAT_CROSS_ENTROPY

template <>
void cross_entropy_statistics<float>(const CrossEntropyShape& shape, const float* logits, const int32_t* targets,
                                     const CrossEntropyStatistics<float>& s) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(statistics_row);
  parallel_ranges(shape.rows, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* row = logits + shape.row(r);
      kernel(shape, row, s.largest[r], s.sum[r]);
      s.target_logit[r] = targets[r] >= 0 ? row[targets[r]] : 0.0f;
    }
  });
}
template <>
void rescale_exponential_sums<float>(int64_t rows, const float* largest, const float* whole_largest, float* sum) {
  reference::rescale_exponential_sums(rows, largest, whole_largest, sum);
}

template <>
void cross_entropy<double>(const CrossEntropyShape& shape, const CrossEntropyArgs<double>& args) {
  reference::cross_entropy(shape, args);
}
template <>
void cross_entropy_statistics<double>(const CrossEntropyShape& shape, const double* logits, const int32_t* targets,
                                      const CrossEntropyStatistics<double>& statistics) {
  reference::cross_entropy_statistics(shape, logits, targets, statistics);
}
template <>
void rescale_exponential_sums<double>(int64_t rows, const double* largest, const double* whole_largest, double* sum) {
  reference::rescale_exponential_sums(rows, largest, whole_largest, sum);
}
template <>
void cross_entropy_gradient<double>(const CrossEntropyShape& shape, const CrossEntropyShardArgs<double>& args) {
  reference::cross_entropy_gradient(shape, args);
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
