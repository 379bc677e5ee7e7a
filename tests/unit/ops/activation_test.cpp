#include "op_test.h"
#include "ops/reference/gelu.h"
#include "ops/reference/swiglu.h"

namespace tprimat::engine {
namespace {

template <class T>
class FastActivation : public FastOp<T> {};
TYPED_TEST_SUITE(FastActivation, FastTypes);

const int64_t k_widths[] = {1, 7, 16, 64, 97, 768};

TYPED_TEST(FastActivation, SwigluMatchesReference) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t width : k_widths) {
      const SwigluShape shape{4, width};
      const auto x = rounded<T>(random_values(8 * width, 6, 4.0)), dy = rounded<T>(random_values(4 * width, 7));
      std::vector<double> y(dy.size()), dx(x.size());
      reference::swiglu_forward(shape, x.data(), y.data());
      reference::swiglu_backward(shape, x.data(), dy.data(), dx.data());
      const auto x_t = narrowed<T>(x), dy_t = narrowed<T>(dy);
      std::vector<T> y_t(y.size()), dx_t(x.size());
      ops<T>().swiglu_forward(shape, x_t.data(), y_t.data());
      ops<T>().swiglu_backward(shape, x_t.data(), dy_t.data(), dx_t.data());
      expect_close(widened(y_t), y, tolerance_of<T>());
      expect_close(widened(dx_t), dx, tolerance_of<T>());
    }
  });
}

TEST(SwigluTest, LargeGatesStayFinite) {
  const std::vector<float> gate_up{-200.0f, 200.0f, 1.0f, 1.0f}, dy{1.0f, 1.0f};
  std::vector<float> y(2), dx(4);
  ops<float>().swiglu_forward({1, 2}, gate_up.data(), y.data());
  ops<float>().swiglu_backward({1, 2}, gate_up.data(), dy.data(), dx.data());
  EXPECT_NEAR(y[0], 0.0f, 1e-30f);
  EXPECT_FLOAT_EQ(y[1], 200.0f);
  for (const float value : dx) EXPECT_TRUE(std::isfinite(value));
}

// In whole vectors and in the lanes behind them.
TYPED_TEST(FastActivation, SwigluOfLargeGatesIsALine) {
  using T = TypeParam;
  constexpr int64_t k_width = 37;
  const float largest = std::is_same_v<T, f16> ? 6e4f : 1e30f;
  for_each_target([&] {
    for (const float z : {100.0f, 1000.0f, largest})
      for (const float sign : {1.0f, -1.0f}) {
        const std::vector<float> row(2 * k_width, 1.0f);
        std::vector<float> gate_up = row;
        std::fill_n(gate_up.begin(), k_width, sign * z);
        const auto x_t = narrowed<T>(std::vector<double>(gate_up.begin(), gate_up.end()));
        const auto dy_t = narrowed<T>(std::vector<double>(row.begin(), row.begin() + k_width));
        std::vector<T> y(k_width), dx(2 * k_width);
        ops<T>().swiglu_forward({1, k_width}, x_t.data(), y.data());
        ops<T>().swiglu_backward({1, k_width}, x_t.data(), dy_t.data(), dx.data());
        const double gate = widened(x_t)[0], line = sign > 0 ? 1.0 : 0.0;
        const double smallest = 1e-37 * std::abs(gate);  // of a power that a float holds
        for (size_t c = 0; c < k_width; ++c) {
          EXPECT_NEAR(widened(y)[c], line * gate, smallest) << gate << ' ' << c;
          EXPECT_NEAR(widened(dx)[c], line, smallest) << gate << ' ' << c;
          EXPECT_NEAR(widened(dx)[k_width + c], line * gate, smallest) << gate << ' ' << c;
        }
      }
  });
}

TYPED_TEST(FastActivation, GeluMatchesReference) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t width : k_widths) {
      for (const bool with_bias : {false, true}) {
        const GeluShape shape{4, width};
        const auto x = rounded<T>(random_values(4 * width, 6, 2.0)), dy = rounded<T>(random_values(4 * width, 7));
        const auto bias = rounded<T>(random_values(width, 8));
        std::vector<double> y(x.size()), dx(x.size()), db(bias.size(), 1.0);
        reference::bias_gelu_forward(shape, x.data(), with_bias ? bias.data() : nullptr, y.data());
        reference::bias_gelu_backward<double>(shape, {x.data(), with_bias ? bias.data() : nullptr, dy.data(), dx.data(),
                                                      with_bias ? db.data() : nullptr});
        const auto x_t = narrowed<T>(x), bias_t = narrowed<T>(bias);
        std::vector<T> y_t(y.size()), dx_t = narrowed<T>(dy);  // dx takes the place of dy
        std::vector<float> db_t(bias.size(), 1.0f);
        ops<T>().bias_gelu_forward(shape, x_t.data(), with_bias ? bias_t.data() : nullptr, y_t.data());
        ops<T>().bias_gelu_backward(shape, {x_t.data(), with_bias ? bias_t.data() : nullptr, dx_t.data(), dx_t.data(),
                                            with_bias ? db_t.data() : nullptr});
        expect_close(widened(y_t), y, tolerance_of<T>());
        expect_close(widened(dx_t), dx, tolerance_of<T>());
        expect_close(widened(db_t), db, 3e-6);
      }
    }
  });
}

// Value by value over the whole range, far into the tail where gelu(z) is about z·e^(2u).
TEST(GeluTest, EveryValueIsClose) {
  for_each_target([] {
    std::vector<float> z;
    for (int i = -1300; i <= 1300; ++i) z.push_back(static_cast<float>(i) * 0.01f);
    const auto count = static_cast<int64_t>(z.size());
    std::vector<float> y(z.size()), slope(z.size(), 1.0f);
    ops<float>().bias_gelu_forward({1, count}, z.data(), nullptr, y.data());
    ops<float>().bias_gelu_backward({1, count}, {z.data(), nullptr, slope.data(), slope.data(), nullptr});
    for (size_t i = 0; i < z.size(); ++i) {
      const double exact = static_cast<double>(z[i]);
      const double expected = exact / (1.0 + std::exp(-2.0 * reference::gelu_argument(exact)));
      ASSERT_NEAR(y[i], expected, 2e-7 * std::abs(exact) + 1e-12) << exact;
      ASSERT_LE(std::abs(y[i] - expected), 3e-5 * std::abs(expected) + 1e-36) << exact;
      ASSERT_NEAR(slope[i], reference::gelu_slope(exact), 1e-6) << exact;
    }
  });
}

TEST(GeluTest, ExtremesStayFiniteAndNanStays) {
  const std::vector<float> z{-1e4f, 1e4f, -60.0f, std::nanf("")};
  std::vector<float> y(4), dx(4, 1.0f);
  for_each_target([&] {
    std::fill(dx.begin(), dx.end(), 1.0f);
    ops<float>().bias_gelu_forward({1, 4}, z.data(), nullptr, y.data());
    ops<float>().bias_gelu_backward({1, 4}, {z.data(), nullptr, dx.data(), dx.data(), nullptr});
    EXPECT_NEAR(y[0], 0.0f, 1e-30f);
    EXPECT_EQ(y[1], 1e4f);
    EXPECT_NEAR(dx[0], 0.0f, 1e-20f);
    EXPECT_EQ(dx[1], 1.0f);
    EXPECT_NEAR(dx[2], 0.0f, 1e-20f);
    EXPECT_TRUE(std::isnan(y[3]) && std::isnan(dx[3]));
  });
}

TEST(GeluTest, NoRowsAreNoWork) {
  float db = 2.0f;
  ops<float>().bias_gelu_backward({0, 1}, {nullptr, nullptr, nullptr, nullptr, &db});
  EXPECT_EQ(db, 2.0f);
}

TEST(GradientTest, Swiglu) {
  auto x = random_values(24, 1);
  const auto dy = random_values(12, 2);
  std::vector<double> y(12), dx(24);
  ops<double>().swiglu_backward({3, 4}, x.data(), dy.data(), dx.data());
  expect_gradient(x, dx, [&] {
    ops<double>().swiglu_forward({3, 4}, x.data(), y.data());
    return dot(y, dy);
  });
}

TEST(GradientTest, BiasGelu) {
  auto x = random_values(12, 1), bias = random_values(4, 3);
  const auto dy = random_values(12, 2);
  std::vector<double> y(12), dx(12), db(4);
  ops<double>().bias_gelu_backward({3, 4}, {x.data(), bias.data(), dy.data(), dx.data(), db.data()});
  const auto loss = [&] {
    ops<double>().bias_gelu_forward({3, 4}, x.data(), bias.data(), y.data());
    return dot(y, dy);
  };
  expect_gradient(x, dx, loss);
  expect_gradient(bias, db, loss);
}

}  // namespace
}  // namespace tprimat::engine
