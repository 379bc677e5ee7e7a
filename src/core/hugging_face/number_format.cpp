#include "hugging_face/number_format.h"

#include <bit>
#include <cstring>

#include "base/check.h"

namespace tprimat {
namespace {

static_assert(std::endian::native == std::endian::little, "the formats are little-endian, and so are the machines");

template <class Stored, class Convert>
void decode_each(std::span<const std::byte> bytes, std::span<float> values, Convert convert) {
  for (size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof stored, sizeof stored);
    values[i] = convert(stored);
  }
}

template <class Stored, class Convert>
void encode_each(std::span<const float> values, std::span<std::byte> bytes, Convert convert) {
  for (size_t i = 0; i < values.size(); ++i) {
    const Stored stored = convert(values[i]);
    std::memcpy(bytes.data() + i * sizeof stored, &stored, sizeof stored);
  }
}

}  // namespace

float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // subnormal
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {  // NaN; if only lower payload bits are set, sets one that fits
    const auto payload = static_cast<uint16_t>((magnitude >> 13) & 0x3ffu);
    return static_cast<uint16_t>(sign | 0x7c00u | (payload != 0 ? payload : 0x200u));
  }
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // rounds to 65520 or more
  if (magnitude < 0x38800000u) {                        // below 2^-14: a multiple of 2^-24, rounded by the addition
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

float bfloat16_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    const auto upper = static_cast<uint16_t>(bits >> 16);
    return (upper & 0x7fu) != 0 ? upper : static_cast<uint16_t>(upper | 0x40u);
  }
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

void decode_numbers(NumberFormat format, std::span<const std::byte> bytes, std::span<float> values) {
  CHECK(bytes.size() == values.size() * static_cast<size_t>(bytes_per_number(format)));
  switch (format) {
    case NumberFormat::f32:
      if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
      return;
    case NumberFormat::f64: return decode_each<double>(bytes, values, [](double v) { return static_cast<float>(v); });
    case NumberFormat::f16: return decode_each<uint16_t>(bytes, values, half_to_float);
    case NumberFormat::bf16: return decode_each<uint16_t>(bytes, values, bfloat16_to_float);
  }
}

void encode_numbers(NumberFormat format, std::span<const float> values, std::span<std::byte> bytes) {
  CHECK(bytes.size() == values.size() * static_cast<size_t>(bytes_per_number(format)));
  switch (format) {
    case NumberFormat::f32:
      if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
      return;
    case NumberFormat::f64: return encode_each<double>(values, bytes, [](float v) { return static_cast<double>(v); });
    case NumberFormat::f16: return encode_each<uint16_t>(values, bytes, float_to_half);
    case NumberFormat::bf16: return encode_each<uint16_t>(values, bytes, float_to_bfloat16);
  }
}

}  // namespace tprimat
