#pragma once

#include "ops/elementwise.h"

namespace tprimat::engine::reference {

template <class T>
void add(int64_t count, const T* a, const T* b, T* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = narrow<T>(widen(a[i]) + widen(b[i]));
}

template <class T>
void add_bias(int64_t rows, int64_t cols, const T* bias, T* x) {
  for (int64_t r = 0; r < rows; ++r) reference::add(cols, x + r * cols, bias, x + r * cols);
}

template <class T>
void add_column_sums(int64_t rows, int64_t cols, const T* x, Accum<T>* sums) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) sums[c] += widen(x[r * cols + c]);
}

template <class A>
double sum_of_squares(std::span<const SquaresRange<A>> ranges) {
  double sum = 0;
  for (const SquaresRange<A>& range : ranges) {
    double squares = 0;
    for (int64_t i = 0; i < range.count; ++i)
      squares += static_cast<double>(range.values[i]) * static_cast<double>(range.values[i]);
    sum += squares;
  }
  return sum;
}

template <class T>
void convert(int64_t count, const Accum<T>* from, T* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = narrow<T>(from[i]);
}

}  // namespace tprimat::engine::reference
