#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace tprimat::engine {

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

// IEEE binary16 as storage. Arithmetic happens in float.
struct f16 {
  uint16_t bits = 0;
  bool operator==(const f16&) const = default;
};

inline float to_float(f16 value) {
  const uint32_t sign = (value.bits & 0x8000u) << 16, magnitude = value.bits & 0x7FFFu;
  if (magnitude >= 0x7C00u) return std::bit_cast<float>(sign | 0x7F800000u | (magnitude & 0x3FFu) << 13);
  if (magnitude >= 0x0400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  const float small = static_cast<float>(magnitude) * 0x1.0p-24f;  // subnormal: exact in float
  return sign != 0 ? -small : small;
}

// Round to nearest, ties to even; too large becomes infinite. NaN stays NaN (quiet).
inline f16 to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return {static_cast<uint16_t>(sign | 0x7E00u)};
  if (magnitude >= 0x477FF000u) return {static_cast<uint16_t>(sign | 0x7C00u)};
  if (magnitude < 0x38800000u)  // below the smallest normal: let the float unit round to a multiple of 2^-24
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) & 0x7FFu))};
  const uint32_t rounded = magnitude - 0x38000000u + 0x0FFFu + ((magnitude >> 13) & 1u);
  return {static_cast<uint16_t>(sign | rounded >> 13)};
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
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
    return to_float(value);
  else
    return value;
}

template <class T>
T narrow(Accum<T> value) {
  if constexpr (std::is_same_v<T, bf16>)
    return to_bf16(value);
  else if constexpr (std::is_same_v<T, f16>)
    return to_f16(value);
  else
    return value;
}

}  // namespace tprimat::engine
