#pragma once

#include <cstdint>

#include "device/element.h"

namespace tprimat::engine {

// 8-bit floating point (Micikevicius et al., arXiv 2209.05433, table 1). E4M3: 1 sign, 4 exponent (bias 7), 3 mantissa
// bits, no infinity, up to 448. E5M2: 1, 5 (bias 15), 2, up to 57344.
enum class Fp8Format { e4m3, e5m2 };

constexpr double fp8_largest(Fp8Format format) { return format == Fp8Format::e4m3 ? 448.0 : 57344.0; }

template <class T>
struct Fp8Ops {
  // What a tensor loses by being stored in 8 bits, with one scale computed from its own greatest magnitude (current
  // scaling of NVIDIA's Transformer Engine; the scale is no power of two):
  //   y[i] = fp8(x[i]·s) · (1/s),  s = fp8_largest / amax,  amax = max |x|
  // fp8() rounds to nearest, ties to even, and saturates; NaN stays NaN and does not count for amax. s is 1 where amax
  // is 0 or infinite, and the greatest finite number where the quotient is infinite. y may be x.
  void (*fp8_round)(int64_t count, const T* x, Fp8Format format, T* y);
};

}  // namespace tprimat::engine
