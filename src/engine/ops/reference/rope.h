#pragma once

#include "ops/rope.h"

namespace tprimat::engine::reference {

template <class T>
void rope_in_place(const RopeShape& shape, const RopeTable<Accum<T>>& table, int direction, T* heads) {
  using A = Accum<T>;
  const int64_t half = shape.head_dim / 2;
  for (int64_t row = 0; row < shape.batch * shape.sequence; ++row) {
    for (int64_t head = 0; head < shape.heads; ++head) {
      T* first = heads + row * shape.row_stride + head * shape.head_dim;
      for (int64_t i = 0; i < half; ++i) {
        const int64_t at = row % shape.sequence * half + i;
        const A a = widen(first[i]), b = widen(first[i + half]);
        const A cosine = table.cosine[at], sine = table.sine[at] * A(direction);
        first[i] = narrow<T>(a * cosine - b * sine);
        first[i + half] = narrow<T>(a * sine + b * cosine);
      }
    }
  }
}

}  // namespace tprimat::engine::reference
