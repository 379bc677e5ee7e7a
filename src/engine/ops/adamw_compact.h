#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "ops/adamw.h"
#include "ops/stochastic_rounding.h"

namespace tprimat::engine {

// AdamW that keeps fewer bytes: moments in the number format M (Accum<T>, or bf16 for half of their bytes), and weights
// of which there is no copy in full precision. What is kept in fewer bits than it is computed with is rounded
// stochastically.
template <class T, class M>
struct CompactAdamwRange {
  int64_t count;
  double weight_decay;
  int64_t first_value;  // number of the first parameter among all that are trained: it picks the random bits
  const Accum<T>* gradient;
  Accum<T>* master;  // null: `weight` is all there is of the weights
  M* first_moment;
  M* second_moment;
  T* weight;  // with a master: the master rounded to the nearest, and it may be the master itself
};

// The formulas of AdamW, with what is kept of m and v only rounded once w has been moved by them. Two runs that differ
// only in how the parameters are cut into ranges, or in the number of threads, give the same bits.
template <class T, class M>
void adamw_update_compact(const AdamwStep& step, uint64_t seed, std::span<const CompactAdamwRange<T, M>> ranges);

// What the formulas multiply with, in float. lr·m̂/(√v̂ + ε) = (lr/c1)·m / (√v/√c2 + ε), c = 1 − β^t
struct AdamwFactors {
  explicit AdamwFactors(const AdamwStep& s)
      : learning_rate(s.learning_rate),
        beta1(static_cast<float>(s.beta1)),
        beta2(static_cast<float>(s.beta2)),
        rest1(static_cast<float>(1.0 - s.beta1)),
        rest2(static_cast<float>(1.0 - s.beta2)),
        rate(static_cast<float>(s.learning_rate / (1.0 - std::pow(s.beta1, static_cast<double>(s.step))))),
        root(static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(s.beta2, static_cast<double>(s.step))))),
        epsilon(static_cast<float>(s.epsilon)),
        scale(static_cast<float>(s.gradient_scale)) {}

  double learning_rate;
  float beta1, beta2, rest1, rest2, rate, root, epsilon, scale;
};

}  // namespace tprimat::engine
