#pragma once

#include <cstdint>

#include "device/element.h"

namespace tprimat::engine {

// y[i] = a[i] + b[i]; y may be a or b.
template <class T>
void add(int64_t count, const T* a, const T* b, T* y);

// x[i] ← factor · x[i]
template <class T>
void scale_in_place(int64_t count, double factor, T* x);

// x[r,c] += bias[c]. x: rows×cols.
template <class T>
void add_bias(int64_t rows, int64_t cols, const T* bias, T* x);

// sums[c] += Σ_r x[r,c]: the gradient of a bias. x: rows×cols.
template <class T>
void add_column_sums(int64_t rows, int64_t cols, const T* x, Accum<T>* sums);

// Σ x², added up in double in a fixed order.
template <class A>
double sum_of_squares(int64_t count, const A* x);

// Whether no x is NaN or infinite. A: float or double.
template <class A>
bool all_finite(int64_t count, const A* x);

// to[i] = from[i] in the number format T.
template <class T>
void convert(int64_t count, const Accum<T>* from, T* to);

// to[i] = from[i], which Accum<T> holds exactly.
template <class T>
void widen_all(int64_t count, const T* from, Accum<T>* to);

}  // namespace tprimat::engine
