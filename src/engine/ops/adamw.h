#pragma once

#include <cstdint>
#include <span>

#include "device/element.h"

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

// m ← β1·m + (1−β1)·g;  v ← β2·v + (1−β2)·g²;  w ← w − lr·( m̂/(√v̂ + ε) + decay·w ),  m̂ = m/(1−β1^t), v̂ = v/(1−β2^t)
// All ranges in one parallel region: each thread takes an equal part of their elements. The result does not depend on
// the number of threads.
template <class T>
void adamw_update_all(const AdamwStep& step, std::span<const AdamwRange<T>> ranges);

}  // namespace tprimat::engine
