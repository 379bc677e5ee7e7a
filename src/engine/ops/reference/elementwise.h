#pragma once

#include <algorithm>
#include <cmath>

#include "ops/elementwise.h"

namespace tprimat::engine::reference {

template <class T>
void add(int64_t count, const T* a, const T* b, T* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = narrow<T>(widen(a[i]) + widen(b[i]));
}

template <class T>
void scale_in_place(int64_t count, double factor, T* x) {
  for (int64_t i = 0; i < count; ++i) x[i] = narrow<T>(widen(x[i]) * static_cast<Accum<T>>(factor));
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
double sum_of_squares(int64_t count, const A* x) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

template <class A>
bool all_finite(int64_t count, const A* x) {
  return std::all_of(x, x + count, [](A value) { return std::isfinite(value); });
}

template <class T>
void convert(int64_t count, const Accum<T>* from, T* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = narrow<T>(from[i]);
}

template <class T>
void widen_all(int64_t count, const T* from, Accum<T>* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = widen(from[i]);
}

}  // namespace tprimat::engine::reference
