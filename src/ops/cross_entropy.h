#pragma once

#include <cstdint>

#include "ops/element.h"

namespace tprimat {

// Softmax cross-entropy over the vocabulary, forward and backward in one visit of the logits.
struct CrossEntropyShape {
  int64_t rows = 0;  // tokens
  int64_t vocab = 0;
};

template <class T>
struct CrossEntropyArgs {
  Accum<T>* logits;        // rows×vocab; overwritten
  const int32_t* targets;  // rows
  double gradient_scale;   // d(total loss)/d(loss of one token): 1 / tokens of the step
  Accum<T>* losses;        // rows: −log softmax(logits)[target], nats
  T* dlogits;              // rows×vocab; for T = Accum<T> it may be `logits` itself
};

// losses[r] = log Σ_v e^logits[r,v] − logits[r,target];   dlogits[r,v] = (softmax(logits)[r,v] − [v = target]) ·
// gradient_scale
template <class T>
void cross_entropy(const CrossEntropyShape& shape, const CrossEntropyArgs<T>& args);

}  // namespace tprimat
