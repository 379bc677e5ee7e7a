#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/fp8.h"

namespace tprimat::engine::reference {

// The nearest value of the format, ties to even; beyond the largest the largest.
template <class A>
A fp8_nearest(A value, Fp8Format format) {
  if (std::isnan(value)) return value;
  const int mantissa_bits = format == Fp8Format::e4m3 ? 3 : 2, least_exponent = format == Fp8Format::e4m3 ? -6 : -14;
  const A size = std::min(std::abs(value), static_cast<A>(fp8_largest(format)));
  const int exponent = size > A(0) ? std::max(std::ilogb(size), least_exponent) : least_exponent;
  const A nearest = std::ldexp(std::nearbyint(std::ldexp(size, mantissa_bits - exponent)), exponent - mantissa_bits);
  return std::copysign(nearest, value);
}

template <class A>
A fp8_scale(A amax, Fp8Format format) {
  if (amax == A(0) || std::isinf(amax)) return A(1);
  return std::min(static_cast<A>(fp8_largest(format)) / amax, std::numeric_limits<A>::max());
}

template <class T>
void fp8_round(int64_t count, const T* x, Fp8Format format, T* y) {
  using A = Accum<T>;
  A amax = 0;
  for (int64_t i = 0; i < count; ++i)
    if (std::abs(widen(x[i])) > amax) amax = std::abs(widen(x[i]));
  const A scale = fp8_scale(amax, format), back = A(1) / scale;
  for (int64_t i = 0; i < count; ++i) y[i] = narrow<T>(fp8_nearest(widen(x[i]) * scale, format) * back);
}

}  // namespace tprimat::engine::reference
