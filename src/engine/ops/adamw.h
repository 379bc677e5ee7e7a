#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "ops/stochastic_rounding.h"

namespace tprimat::engine {

// AdamW (Loshchilov & Hutter, arXiv 1711.05101, algorithm 2) with the learning rate applied to the decay too, as
// PyTorch does.
struct AdamwStep {
  double learning_rate = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double gradient_scale = 1.0;  // multiplies every gradient first: clipping, loss scale
  int64_t step = 1;             // from 1; for the bias correction
};

// One contiguous run of parameters and their states.
template <class T>
struct AdamwRange {
  int64_t count;
  double weight_decay;
  const Accum<T>* gradient;
  Accum<T>* master;  // weights in full precision
  Accum<T>* first_moment;
  Accum<T>* second_moment;
  T* weight;  // what the model multiplies with: the master rounded to T; may be `master` itself
};

template <class T>
struct AdamwOps {
  // m ← β1·m + (1−β1)·g;  v ← β2·v + (1−β2)·g²;  w ← w − lr·( m̂/(√v̂ + ε) + decay·w ),  m̂ = m/(1−β1^t), v̂ = v/(1−β2^t)
  // All ranges in one parallel region: each thread takes an equal part of their elements. The result does not depend on
  // the number of threads.
  void (*adamw)(const AdamwStep& step, std::span<const AdamwRange<T>> ranges);
};

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

template <class T>
struct CompactAdamwOps {
  // The formulas of AdamW, with what is kept of m and v only rounded once w has been moved by them. Two runs that
  // differ only in how the parameters are cut into ranges, or in the number of threads, give the same bits.
  void (*adamw_compact)(const AdamwStep&, uint64_t seed, std::span<const CompactAdamwRange<T, Accum<T>>> ranges);
  void (*adamw_bf16_moments)(const AdamwStep&, uint64_t seed, std::span<const CompactAdamwRange<T, bf16>> ranges);
};

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
