#include "ops/fp8.h"

#include <algorithm>
#include <limits>

#include "op_test.h"
#include "ops/reference/fp8.h"

namespace tprimat::engine {
namespace {

struct Layout {
  int mantissa_bits, bias, last_code;  // last_code: of the largest finite value
};
constexpr Layout layout_of(Fp8Format format) {
  return format == Fp8Format::e4m3 ? Layout{3, 7, 0x7E} : Layout{2, 15, 0x7B};
}
constexpr Fp8Format k_formats[] = {Fp8Format::e4m3, Fp8Format::e5m2};

// The positive finite values in the order of their codes, by the definition of the format.
std::vector<double> values_of(Fp8Format format) {
  const auto [bits, bias, last] = layout_of(format);
  std::vector<double> values;
  for (int code = 0; code <= last; ++code) {
    const int exponent = code >> bits, mantissa = code & ((1 << bits) - 1);
    values.push_back(exponent == 0 ? std::ldexp(mantissa, 1 - bias - bits)
                                   : std::ldexp((1 << bits) + mantissa, exponent - bias - bits));
  }
  return values;
}

struct Fp8Case {
  double value, nearest;
};

// Every value, and between every two the middle (which goes to the even code) and what lies next to it.
std::vector<Fp8Case> rounding_cases(Fp8Format format) {
  const std::vector<double> values = values_of(format);
  std::vector<Fp8Case> cases;
  for (size_t code = 0; code < values.size(); ++code) cases.push_back({values[code], values[code]});
  for (size_t code = 0; code + 1 < values.size(); ++code) {
    const auto middle = static_cast<float>((values[code] + values[code + 1]) / 2);
    cases.push_back({static_cast<double>(middle), values[code % 2 == 0 ? code : code + 1]});
    cases.push_back({static_cast<double>(std::nextafter(middle, 0.0f)), values[code]});
    cases.push_back({static_cast<double>(std::nextafter(middle, 1e9f)), values[code + 1]});
  }
  return cases;
}

TEST(Fp8Test, TheLargestValueIsTheTables) {
  for (const Fp8Format format : k_formats) EXPECT_EQ(values_of(format).back(), fp8_largest(format));
}

// The largest value is among the inputs, so the scale is 1 and the grid is the format's own.
TEST(Fp8Test, RoundsToNearestEven) {
  for_each_target([] {
    for (const Fp8Format format : k_formats) {
      const auto cases = rounding_cases(format);
      std::vector<float> x, y(2 * cases.size());
      for (const double sign : {1.0, -1.0})
        for (const Fp8Case& c : cases) x.push_back(static_cast<float>(sign * c.value));
      ops<float>().fp8_round(static_cast<int64_t>(x.size()), x.data(), format, y.data());
      for (size_t i = 0; i < x.size(); ++i) {
        const double expected = (i < cases.size() ? 1 : -1) * cases[i % cases.size()].nearest;
        ASSERT_EQ(static_cast<double>(y[i]), expected) << x[i];
        ASSERT_EQ(std::signbit(y[i]), std::signbit(x[i])) << x[i];
        ASSERT_EQ(reference::fp8_nearest<double>(static_cast<double>(x[i]), format), expected) << x[i];
      }
    }
  });
}

template <class T>
class FastFp8 : public FastOp<T> {};
TYPED_TEST_SUITE(FastFp8, FastTypes);

TYPED_TEST(FastFp8, MatchesReference) {
  using T = TypeParam;
  for_each_target([] {
    for (const Fp8Format format : k_formats) {
      for (const int64_t count : {0, 1, 5, 100, 1003}) {
        const auto x = narrowed<T>(random_values(count, 3, 0.01));
        std::vector<T> expected(x.size()), y = x;
        reference::fp8_round(count, x.data(), format, expected.data());
        ops<T>().fp8_round(count, y.data(), format, y.data());
        EXPECT_EQ(widened(y), widened(expected));
        expect_close(widened(y), widened(x), format == Fp8Format::e4m3 ? 0.04 : 0.08);
      }
    }
  });
}

TEST(Fp8Test, NanStaysAndDoesNotCount) {
  for_each_target([] {
    std::vector<float> x(37, 0.5f), y(37);
    x[3] = x[36] = std::numeric_limits<float>::quiet_NaN();
    x[20] = -1.75f;
    ops<float>().fp8_round(37, x.data(), Fp8Format::e4m3, y.data());
    EXPECT_TRUE(std::isnan(y[3]) && std::isnan(y[36]));
    EXPECT_FLOAT_EQ(y[20], -1.75f);
    EXPECT_FLOAT_EQ(y[0], 0.5f);
  });
}

TEST(Fp8Test, ExtremesHaveTheScaleOne) {
  for_each_target([] {
    const float infinity = std::numeric_limits<float>::infinity(), least = std::numeric_limits<float>::denorm_min();
    std::vector<float> x{infinity, -3.0f, -infinity}, y(3);
    ops<float>().fp8_round(3, x.data(), Fp8Format::e5m2, y.data());
    EXPECT_EQ(y, (std::vector<float>{57344.0f, -3.0f, -57344.0f}));
    x = {0.0f, -0.0f, 0.0f};
    ops<float>().fp8_round(3, x.data(), Fp8Format::e4m3, y.data());
    EXPECT_EQ(y, x);
    x = {least, 0.0f, -least};  // 448/least is infinite
    ops<float>().fp8_round(3, x.data(), Fp8Format::e4m3, y.data());
    for (const float value : y) EXPECT_TRUE(std::isfinite(value));
  });
}

}  // namespace
}  // namespace tprimat::engine
