#pragma once

#include <algorithm>
#include <cmath>

#include "ops/cross_entropy.h"

namespace tprimat::reference {

template <class T>
void cross_entropy(const CrossEntropyShape& shape, const CrossEntropyArgs<T>& args) {
  using A = Accum<T>;
  for (int64_t r = 0; r < shape.rows; ++r) {
    const A* row = args.logits + r * shape.vocab;
    const A largest = *std::max_element(row, row + shape.vocab);
    A sum = 0;
    for (int64_t v = 0; v < shape.vocab; ++v) sum += std::exp(row[v] - largest);
    const int32_t target = args.targets[r];
    args.losses[r] = std::log(sum) + largest - row[target];
    for (int64_t v = 0; v < shape.vocab; ++v) {
      const A softmax = std::exp(row[v] - largest) / sum;
      args.dlogits[r * shape.vocab + v] = narrow<T>((softmax - (v == target ? A(1) : A(0))) * A(args.gradient_scale));
    }
  }
}

}  // namespace tprimat::reference
