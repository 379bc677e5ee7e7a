#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace tprimat {

// bfloat16 as storage: the upper half of an IEEE float. Arithmetic happens in float.
struct bf16 {
  uint16_t bits = 0;
  bool operator==(const bf16&) const = default;
};

inline float to_float(bf16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16); }

// Round to nearest, ties to even. NaN stays NaN (quiet).
inline bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}

// The type in which values of T are added up, and in which gradients of weights and statistics are kept.
template <class T>
struct AccumulatorOf {
  using type = float;
};
template <>
struct AccumulatorOf<double> {
  using type = double;
};
template <class T>
using Accum = typename AccumulatorOf<T>::type;

template <class T>
Accum<T> widen(T value) {
  if constexpr (std::is_same_v<T, bf16>)
    return to_float(value);
  else
    return value;
}

template <class T>
T narrow(Accum<T> value) {
  if constexpr (std::is_same_v<T, bf16>)
    return to_bf16(value);
  else
    return value;
}

}  // namespace tprimat
