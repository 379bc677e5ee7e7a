#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/cross_entropy.h"

namespace tprimat::engine::reference {

template <class T>
void cross_entropy(const CrossEntropyShape& shape, const CrossEntropyArgs<T>& args) {
  using A = Accum<T>;
  for (int64_t r = 0; r < shape.rows; ++r) {
    const A* row = args.logits + shape.row(r);
    const A largest = *std::max_element(row, row + shape.vocab);
    A sum = 0;
    for (int64_t v = 0; v < shape.vocab; ++v) sum += std::exp(row[v] - largest);
    const int32_t target = args.targets[r];
    args.losses[r] = std::log(sum) + largest - row[target];
    for (int64_t v = 0; v < shape.vocab; ++v) {
      const A softmax = std::exp(row[v] - largest) / sum;
      args.dlogits[shape.gradient_row(r) + v] =
          narrow<T>((softmax - (v == target ? A(1) : A(0))) * A(args.gradient_scale));
    }
  }
}

template <class A>
void cross_entropy_statistics(const CrossEntropyShape& shape, const A* logits, const int32_t* targets,
                              const CrossEntropyStatistics<A>& statistics) {
  for (int64_t r = 0; r < shape.rows; ++r) {
    const A* row = logits + shape.row(r);
    A largest = -std::numeric_limits<A>::infinity(), sum = 0;
    for (int64_t v = 0; v < shape.vocab; ++v) largest = std::max(largest, row[v]);
    for (int64_t v = 0; v < shape.vocab; ++v) sum += std::exp(row[v] - largest);
    statistics.largest[r] = std::isnan(sum) ? sum : largest;
    statistics.sum[r] = sum;
    statistics.target_logit[r] = targets[r] >= 0 ? row[targets[r]] : A(0);
  }
}

template <class A>
void rescale_exponential_sums(int64_t rows, const A* largest, const A* whole_largest, A* sum) {
  for (int64_t r = 0; r < rows; ++r) sum[r] *= std::exp(largest[r] - whole_largest[r]);
}

template <class T>
void cross_entropy_gradient(const CrossEntropyShape& shape, const CrossEntropyShardArgs<T>& args) {
  using A = Accum<T>;
  for (int64_t r = 0; r < shape.rows; ++r) {
    const A* row = args.logits + shape.row(r);
    args.losses[r] = std::log(args.whole.sum[r]) + args.whole.largest[r] - args.whole.target_logit[r];
    for (int64_t v = 0; v < shape.vocab; ++v) {
      const A softmax = std::exp(row[v] - args.whole.largest[r]) / args.whole.sum[r];
      const A one = v == args.targets[r] ? A(1) : A(0);
      args.dlogits[shape.gradient_row(r) + v] = narrow<T>((softmax - one) * A(args.gradient_scale));
    }
  }
}

}  // namespace tprimat::engine::reference
