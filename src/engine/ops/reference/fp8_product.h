#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/fp8_product.h"
#include "ops/reference/fp8.h"

namespace tprimat::engine::reference {

// The value of a byte. E4M3 has NaN (0x7F) and no infinity; E5M2 has both.
template <class A>
A fp8_value(uint8_t bits, Fp8Format format) {
  const int mantissa_bits = format == Fp8Format::e4m3 ? 3 : 2, bias = format == Fp8Format::e4m3 ? 7 : 15;
  const int exponent = (bits & 0x7F) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
  const A sign = (bits & 0x80) != 0 ? A(-1) : A(1);
  if (format == Fp8Format::e4m3 && (bits & 0x7F) == 0x7F) return std::numeric_limits<A>::quiet_NaN();
  if (format == Fp8Format::e5m2 && exponent == 31)
    return mantissa != 0 ? std::numeric_limits<A>::quiet_NaN() : sign * std::numeric_limits<A>::infinity();
  const A fraction = std::ldexp(A(mantissa), -mantissa_bits);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(A(1) + fraction, exponent - bias));
}

// The byte whose value is fp8_nearest(value), by looking at all of them.
template <class A>
uint8_t fp8_byte(A value, Fp8Format format) {
  if (std::isnan(value)) return 0x7F;
  const A nearest = fp8_nearest(value, format);
  for (int bits = 0; bits < 256; ++bits)
    if (fp8_value<A>(static_cast<uint8_t>(bits), format) == nearest && ((bits & 0x80) != 0) == std::signbit(nearest))
      return static_cast<uint8_t>(bits);
  return 0x7F;
}

template <class T>
void fp8_quantize(const Fp8Quantize<T>& q) {
  using A = Accum<T>;
  float amax = 0;
  for (int64_t i = 0; i < q.rows * q.cols; ++i) amax = std::fmax(amax, static_cast<float>(std::abs(widen(q.x[i]))));
  if (q.scaling == Fp8Scaling::current) {
    *q.scale.amax = amax;
    *q.scale.scale = fp8_scale(amax, q.format);
    *q.scale.back = 1.0f / *q.scale.scale;
  } else {
    *q.scale.amax = std::max(*q.scale.amax, amax);
  }
  for (int64_t r = 0; r < q.rows; ++r)
    for (int64_t c = 0; c < q.cols; ++c) {
      const uint8_t bits = fp8_byte<A>(widen(q.x[r * q.cols + c]) * static_cast<A>(*q.scale.scale), q.format);
      if (q.y != nullptr) q.y[r * q.cols + c] = bits;
      if (q.y_transposed != nullptr) q.y_transposed[c * q.rows + r] = bits;
    }
}

inline void fp8_next_scales(const Fp8History& h) {
  for (int64_t t = 0; t < h.tensors; ++t) {
    float* const amaxes = h.history + t * h.length;
    amaxes[h.step % h.length] = h.amax[t];
    h.amax[t] = 0;
    const float largest = *std::max_element(amaxes, amaxes + h.length);
    if (largest > 0 && std::isfinite(largest))
      h.scale[t] = std::min(h.largest[t] / largest, std::numeric_limits<float>::max());
    h.back[t] = 1.0f / h.scale[t];
  }
}

template <class C>
void fp8_matmul(const Fp8Product<C>& p) {
  using A = Accum<C>;
  for (int64_t m = 0; m < p.a.rows; ++m)
    for (int64_t n = 0; n < p.b.rows; ++n) {
      A sum = 0;
      for (int64_t k = 0; k < p.a.cols; ++k)
        sum +=
            fp8_value<A>(p.a.data[m * p.a.cols + k], p.a.format) * fp8_value<A>(p.b.data[n * p.b.cols + k], p.b.format);
      sum *= static_cast<A>(*p.a.back) * static_cast<A>(*p.b.back);
      C& out = p.c.data[m * p.c.row_stride + n];
      out = narrow<C>(p.accumulate ? static_cast<A>(widen(out)) + sum : sum);
    }
}

}  // namespace tprimat::engine::reference
