#include "hugging_face/number_format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace tprimat {
namespace {

// The value of a half by its definition (IEEE 754, section 3.4).
double half_by_definition(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

TEST(NumberFormat, EveryHalfIsItsDefinitionAndComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = half_to_float(half);
    if (!std::isnan(value)) {
      EXPECT_EQ(value, half_by_definition(half)) << bits;
    }
    EXPECT_EQ(std::isnan(value), std::isnan(half_by_definition(half)));
    EXPECT_EQ(float_to_half(value), half);
  }
}

TEST(NumberFormat, EveryBfloat16ComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits)
    EXPECT_EQ(float_to_bfloat16(bfloat16_to_float(static_cast<uint16_t>(bits))), bits);
}

TEST(NumberFormat, RoundsHalvesToNearestTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {  // each pair of neighbours, up to the largest
    const auto low = static_cast<uint16_t>(bits), high = static_cast<uint16_t>(bits + 1);
    const float middle = (half_to_float(low) + half_to_float(high)) / 2;
    EXPECT_EQ(float_to_half(middle), (low & 1) == 0 ? low : high) << bits;
    EXPECT_EQ(float_to_half(std::nextafterf(middle, 0.0f)), low) << bits;
    EXPECT_EQ(float_to_half(std::nextafterf(middle, 1e9f)), high) << bits;
  }
  EXPECT_EQ(float_to_half(65519.996f), 0x7bff);
  EXPECT_EQ(float_to_half(-65520.0f), 0xfc00);
  EXPECT_EQ(float_to_half(0x1p-25f), 0);
  EXPECT_EQ(float_to_half(std::nextafterf(0x1p-25f, 1.0f)), 1);
}

TEST(NumberFormat, RoundsBfloat16ToNearestTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7f7f; ++bits) {
    const auto middle = std::bit_cast<float>((bits << 16) | 0x8000u);
    EXPECT_EQ(float_to_bfloat16(middle), (bits & 1) == 0 ? bits : bits + 1);
    EXPECT_EQ(float_to_bfloat16(std::nextafterf(middle, 0.0f)), bits);
    EXPECT_EQ(float_to_bfloat16(std::nextafterf(middle, INFINITY)), bits + 1);
  }
  EXPECT_EQ(float_to_bfloat16(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(NumberFormat, NaNStaysNaN) {
  const float quiet = std::numeric_limits<float>::quiet_NaN(), low_payload = std::bit_cast<float>(0xff800001u);
  for (const float value : {quiet, low_payload}) {
    EXPECT_TRUE(std::isnan(half_to_float(float_to_half(value))));
    EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(value))));
  }
}

TEST(NumberFormat, EncodesAndDecodesEveryFormat) {
  const std::vector<float> values = {0.0f, -1.5f, 0.15625f, 1024.0f, -0x1p-14f};
  for (const NumberFormat format : {NumberFormat::f32, NumberFormat::f64, NumberFormat::f16, NumberFormat::bf16}) {
    std::vector<std::byte> bytes(values.size() * static_cast<size_t>(bytes_per_number(format)));
    encode_numbers(format, values, bytes);
    std::vector<float> back(values.size());
    decode_numbers(format, bytes, back);
    EXPECT_EQ(back, values) << enum_name(format);
  }
}

}  // namespace
}  // namespace tprimat
