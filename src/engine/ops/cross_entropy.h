#pragma once

#include <cstdint>

#include "device/element.h"

namespace tprimat::engine {

// Softmax cross-entropy over the vocabulary. A NaN among the logits of a row reaches the row's loss. What lies between
// the rows is neither read nor written.
struct CrossEntropyShape {
  int64_t rows = 0;             // tokens
  int64_t vocab = 0;            // columns held here
  int64_t stride = 0;           // elements from one row of logits to the next; 0: vocab
  int64_t gradient_stride = 0;  // elements of T from one row of dlogits to the next; 0: vocab

  int64_t row(int64_t r) const { return r * (stride > 0 ? stride : vocab); }
  int64_t gradient_row(int64_t r) const { return r * (gradient_stride > 0 ? gradient_stride : vocab); }
};
// dlogits may lie over the logits: in the same memory, each row beginning where its logits do.

template <class T>
struct CrossEntropyArgs {
  Accum<T>* logits;        // rows×vocab; overwritten
  const int32_t* targets;  // rows
  double gradient_scale;   // d(total loss)/d(loss of one token): 1 / tokens of the step
  Accum<T>* losses;        // rows: −log softmax(logits)[target], nats
  T* dlogits;              // rows×vocab
};

// Where the columns are shared out over ranks (Megatron-LM, arXiv 1909.08053, section 3):
//   1. cross_entropy_statistics of the own columns
//   2. the greatest of `largest` over the ranks → whole_largest
//   3. rescale_exponential_sums, then the totals of `sum` and `target_logit` over the ranks
//   4. cross_entropy_gradient of the own columns; the losses are the same on every rank
template <class A>
struct CrossEntropyStatistics {
  A* largest;       // rows: greatest of the columns, −∞ where there are none; NaN where one is NaN
  A* sum;           // rows: Σ_v e^(logits[r,v] − largest[r]) over the columns; NaN where one is NaN
  A* target_logit;  // rows: logits[r,target], 0 where the target is another rank's
};

template <class T>
struct CrossEntropyShardArgs {
  const Accum<T>* logits;                        // rows×vocab, own columns
  const int32_t* targets;                        // rows, own column or −1
  CrossEntropyStatistics<const Accum<T>> whole;  // of all ranks together
  double gradient_scale;                         // as above
  Accum<T>* losses;                              // rows
  T* dlogits;                                    // rows×vocab
};

template <class T>
struct CrossEntropyOps {
  using A = Accum<T>;
  // Forward and backward in one visit of the logits:
  // losses[r] = log Σ_v e^logits[r,v] − logits[r,target];   dlogits[r,v] = (softmax(logits)[r,v] − [v = target]) ·
  // gradient_scale
  void (*cross_entropy)(const CrossEntropyShape&, const CrossEntropyArgs<T>&);
  // targets[r]: column of the target among those held here, −1 where another rank holds it.
  void (*cross_entropy_statistics)(const CrossEntropyShape&, const A* logits, const int32_t* targets,
                                   const CrossEntropyStatistics<A>&);
  // sum[r] ← sum[r] · e^(largest[r] − whole_largest[r]): own sums relative to the greatest logit of all ranks. A NaN in
  // `sum` stays, so that it survives a maximum that drops NaN.
  void (*rescale_exponential_sums)(int64_t rows, const A* largest, const A* whole_largest, A* sum);
  // losses[r] = log sum[r] + largest[r] − target_logit[r];   dlogits[r,v] = (e^(logits[r,v] − largest[r]) / sum[r] − [v
  // = target]) · gradient_scale
  void (*cross_entropy_gradient)(const CrossEntropyShape&, const CrossEntropyShardArgs<T>&);
};

}  // namespace tprimat::engine
