#pragma once

#include <cstdint>
#include <span>

#include "device/element.h"

namespace tprimat::engine {

// Values whose squares count.
template <class A>
struct SquaresRange {
  const A* values;
  int64_t count;
};

template <class T>
struct ElementwiseOps {
  using A = Accum<T>;
  // y[i] = a[i] + b[i]; y may be a or b.
  void (*add)(int64_t count, const T* a, const T* b, T* y);
  void (*add_wide)(int64_t count, const A* a, const A* b, A* y);
  // x[r,c] += bias[c]. x: rows×cols.
  void (*add_bias)(int64_t rows, int64_t cols, const T* bias, T* x);
  // sums[c] += Σ_r x[r,c]: the gradient of a bias. x: rows×cols.
  void (*add_column_sums)(int64_t rows, int64_t cols, const T* x, A* sums);
  // to[i] = from[i] in the number format T.
  void (*convert)(int64_t count, const A* from, T* to);
  // Σ x² of all ranges, added up in double in a fixed order. Waits for the device.
  double (*sum_of_squares)(std::span<const SquaresRange<A>> ranges);
};

// Whether no x is NaN or infinite. On the processor, as the next.
bool all_finite(int64_t count, const float* x);

// to[i] = from[i]. T: bf16 or f16.
template <class T>
void widen_all(int64_t count, const T* from, float* to);

}  // namespace tprimat::engine
