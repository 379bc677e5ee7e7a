#include "device/element.h"

#include <cmath>
#include <limits>

#include "op_test.h"
#include "ops/elementwise.h"

namespace tprimat::engine {
namespace {

f16 f16_of(uint32_t bits) { return {static_cast<uint16_t>(bits)}; }

// The value of a binary16 pattern by its definition (IEEE 754-2019, 3.4).
double f16_value(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 0x1F), mantissa = static_cast<int>(bits & 0x3FF);
  const double size = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

bool is_nan(f16 value) { return (value.bits & 0x7FFF) > 0x7C00; }

TEST(F16Test, EveryPatternHasItsValue) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = to_float(f16_of(bits));
    const uint32_t magnitude = bits & 0x7FFF;
    if (magnitude > 0x7C00) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(is_nan(to_f16(value))) << bits;
      continue;
    }
    const double expected =
        magnitude < 0x7C00 ? f16_value(bits) : (bits == 0x7C00 ? 1 : -1) * std::numeric_limits<double>::infinity();
    ASSERT_EQ(static_cast<double>(value), expected) << bits;
    ASSERT_EQ(std::signbit(value), bits >= 0x8000) << bits;
    ASSERT_EQ(to_f16(value).bits, bits);
  }
}

struct RoundingCase {
  float value;
  uint32_t bits;
};

// Between every two neighbours: the middle goes to the even pattern, its neighbours to the nearer one. Above the
// largest finite value the next step would be 65536; from its middle on the result is infinite.
std::vector<RoundingCase> f16_rounding_cases() {
  std::vector<RoundingCase> cases;
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const auto middle = static_cast<float>((f16_value(bits) + f16_value(bits + 1)) / 2);
    const uint32_t even = (bits & 1) == 0 ? bits : bits + 1;
    for (const uint32_t sign : {0u, 0x8000u}) {
      const float factor = sign == 0 ? 1.0f : -1.0f;
      cases.push_back({factor * middle, sign | even});
      cases.push_back({factor * std::nextafter(middle, 0.0f), sign | bits});
      cases.push_back({factor * std::nextafter(middle, 1e9f), sign | (bits + 1)});
    }
  }
  const float infinity = std::numeric_limits<float>::infinity(), least = std::numeric_limits<float>::denorm_min();
  for (const float value : {infinity, 1e9f, std::numeric_limits<float>::max()})
    cases.insert(cases.end(), {{value, 0x7C00}, {-value, 0xFC00}});
  cases.insert(cases.end(), {{least, 0}, {-least, 0x8000}, {1e-30f, 0}, {-0.0f, 0x8000}});
  return cases;
}

TEST(F16Test, RoundsToNearestEven) {
  for (const auto& [value, bits] : f16_rounding_cases()) ASSERT_EQ(to_f16(value).bits, bits) << value;
  for (const uint32_t nan : {0x7F800001u, 0x7FC00000u, 0xFF800001u, 0xFFFFFFFFu})
    EXPECT_TRUE(is_nan(to_f16(std::bit_cast<float>(nan))));
}

TEST(F16Test, VectorsRoundAsScalarsDo) {
  const auto cases = f16_rounding_cases();
  std::vector<float> values;
  for (const RoundingCase& c : cases) values.push_back(c.value);
  values.push_back(std::numeric_limits<float>::quiet_NaN());
  for_each_target([&] {
    std::vector<f16> rounded_values(values.size());
    ops<f16>().convert(static_cast<int64_t>(values.size()), values.data(), rounded_values.data());
    for (size_t i = 0; i < cases.size(); ++i) ASSERT_EQ(rounded_values[i].bits, cases[i].bits) << values[i];
    EXPECT_TRUE(is_nan(rounded_values.back()));
  });
}

TEST(F16Test, VectorsWidenAsScalarsDo) {
  std::vector<f16> all(0x10000 - 1);  // odd, so that there is a tail
  for (uint32_t bits = 0; bits < all.size(); ++bits) all[bits] = f16_of(bits);
  for_each_target([&] {
    std::vector<float> values(all.size());
    widen_all<f16>(static_cast<int64_t>(all.size()), all.data(), values.data());
    for (size_t i = 0; i < all.size(); ++i) {
      if (is_nan(all[i]))
        ASSERT_TRUE(std::isnan(values[i])) << i;
      else
        ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(to_float(all[i]))) << i;
    }
  });
}

TEST(Bf16Test, VectorsRoundAsScalarsDo) {
  for_each_target([] {
    std::vector<float> values;
    for (uint32_t bits = 0; bits < 0xFFFF0000u; bits += 0x1357) values.push_back(std::bit_cast<float>(bits));
    std::erase_if(values, [](float value) { return std::isnan(value); });
    std::vector<bf16> rounded_values(values.size());
    ops<bf16>().convert(static_cast<int64_t>(values.size()), values.data(), rounded_values.data());
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(rounded_values[i].bits, to_bf16(values[i]).bits) << values[i];
    std::vector<float> back(values.size());
    widen_all<bf16>(static_cast<int64_t>(values.size()), rounded_values.data(), back.data());
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(back[i], to_float(rounded_values[i]));
  });
}

}  // namespace
}  // namespace tprimat::engine
