#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "device/element.h"

// Rounding up or down by chance, so that the mean over many roundings is the value itself (Gupta et al., arXiv
// 1502.02551, section 3): what is smaller than half the distance between two numbers is not lost. The chance is decided
// by random bits that a seed, a step and the number of a value alone decide. Called on GPUs too.
namespace tprimat::engine {

// The finaliser of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014): a bijection whose outputs pass for independent draws.
constexpr uint64_t mix_bits(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
  return bits ^ (bits >> 31);
}
// 64 independent bits for each value of each step.
constexpr uint64_t rounding_key(uint64_t seed, int64_t step) {
  return mix_bits(mix_bits(seed) ^ static_cast<uint64_t>(step));
}
constexpr uint64_t rounding_bits(uint64_t key, int64_t value) {
  return mix_bits(key + static_cast<uint64_t>(value) * 0x9E3779B97F4A7C15u);
}

// One of the two neighbours of `value` in T, the nearer one with the greater chance; `chance`: 16 random bits. Exact
// numbers, NaN and infinity stay; float and double are what they are.
template <class T>
constexpr T round_by_chance(Accum<T> value, [[maybe_unused]] uint32_t chance) {
  if constexpr (std::is_same_v<T, Accum<T>>) {
    return value;
  } else {
    const auto bits = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    if constexpr (std::is_same_v<T, bf16>) {
      if (magnitude > 0x7F800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
      return {static_cast<uint16_t>((bits + (magnitude == 0x7F800000u ? 0u : chance)) >> 16)};
    } else {
      const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
      if (magnitude > 0x7F800000u) return {static_cast<uint16_t>(sign | 0x7E00u)};
      if (magnitude >= 0x47800000u) return {static_cast<uint16_t>(sign | 0x7C00u)};  // 65536
      if (magnitude < 0x38800000u) {  // below the smallest normal: multiples of 2^-24
        const float units = std::bit_cast<float>(magnitude) * 0x1.0p24f;
        const auto below = static_cast<uint32_t>(units);
        const bool up = static_cast<float>(chance) < (units - static_cast<float>(below)) * 65536.0f;
        return {static_cast<uint16_t>(sign | (below + (up ? 1u : 0u)))};
      }
      return {static_cast<uint16_t>(sign | (magnitude - 0x38000000u + (chance >> 3)) >> 13)};
    }
  }
}

}  // namespace tprimat::engine
