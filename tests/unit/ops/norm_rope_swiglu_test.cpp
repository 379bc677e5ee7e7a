#include "op_test.h"
#include "ops/reference/rmsnorm.h"
#include "ops/reference/rope.h"
#include "ops/reference/swiglu.h"

namespace tprimat {
namespace {

template <class T>
class FastRows : public FastOp<T> {};
TYPED_TEST_SUITE(FastRows, FastTypes);

// Widths around the lengths of vectors: whole ones, tails, shorter than one.
const int64_t k_widths[] = {1, 7, 16, 64, 97, 768};

TYPED_TEST(FastRows, RmsnormMatchesReference) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t cols : k_widths) {
      const RmsNormShape shape{5, cols, 1e-5};
      const auto x = rounded<T>(random_values(5 * cols, 1, 3.0)), w = rounded<T>(random_values(cols, 2));
      const auto dy = rounded<T>(random_values(5 * cols, 3)), dx = rounded<T>(random_values(5 * cols, 4));
      std::vector<double> y(x.size()), rstd(5), dx_expected = dx, dw_expected(w.size());
      reference::rmsnorm_forward(shape, x.data(), w.data(), y.data(), rstd.data());
      reference::rmsnorm_backward<double>(
          shape, {x.data(), w.data(), rstd.data(), dy.data(), dx_expected.data(), dw_expected.data()});

      const auto x_t = narrowed<T>(x), w_t = narrowed<T>(w), dy_t = narrowed<T>(dy);
      std::vector<T> y_t(x.size()), dx_t = narrowed<T>(dx);
      std::vector<float> rstd_t(5), dw_t(w.size());
      rmsnorm_forward<T>(shape, x_t.data(), w_t.data(), y_t.data(), rstd_t.data());
      rmsnorm_backward<T>(shape, {x_t.data(), w_t.data(), rstd_t.data(), dy_t.data(), dx_t.data(), dw_t.data()});
      expect_close(widened(y_t), y, tolerance_of<T>());
      expect_close(widened(rstd_t), rstd, 3e-6);
      expect_close(widened(dx_t), dx_expected, tolerance_of<T>());
      expect_close(widened(dw_t), dw_expected, 3e-6);
    }
  });
}

TYPED_TEST(FastRows, RopeMatchesReferenceAndTurnsBack) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t head_dim : {2, 10, 64, 128}) {
      const RopeShape shape{2, 9, 3, head_dim, 5 * head_dim};
      std::vector<double> cosine(9 * head_dim / 2), sine(cosine.size());
      fill_rope_table<double>(9, head_dim, 1e4, {cosine.data(), sine.data()});
      std::vector<float> cosine_f(cosine.size()), sine_f(cosine.size());
      fill_rope_table<float>(9, head_dim, 1e4, {cosine_f.data(), sine_f.data()});
      const auto start = rounded<T>(random_values(2 * 9 * 5 * head_dim, 5));
      auto turned = start;
      reference::rope_in_place<double>(shape, {cosine.data(), sine.data()}, +1, turned.data());
      auto turned_t = narrowed<T>(start);
      rope_in_place<T>(shape, {cosine_f.data(), sine_f.data()}, +1, turned_t.data());
      expect_close(widened(turned_t), turned, tolerance_of<T>());
      rope_in_place<T>(shape, {cosine_f.data(), sine_f.data()}, -1, turned_t.data());
      expect_close(widened(turned_t), start, tolerance_of<T>());
    }
  });
}

TYPED_TEST(FastRows, SwigluMatchesReference) {
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
      swiglu_forward(shape, x_t.data(), y_t.data());
      swiglu_backward(shape, x_t.data(), dy_t.data(), dx_t.data());
      expect_close(widened(y_t), y, tolerance_of<T>());
      expect_close(widened(dx_t), dx, tolerance_of<T>());
    }
  });
}

TEST(SwigluTest, LargeGatesStayFinite) {
  const std::vector<float> gate_up{-200.0f, 200.0f, 1.0f, 1.0f}, dy{1.0f, 1.0f};
  std::vector<float> y(2), dx(4);
  swiglu_forward<float>({1, 2}, gate_up.data(), y.data());
  swiglu_backward<float>({1, 2}, gate_up.data(), dy.data(), dx.data());
  EXPECT_NEAR(y[0], 0.0f, 1e-30f);
  EXPECT_FLOAT_EQ(y[1], 200.0f);
  for (const float value : dx) EXPECT_TRUE(std::isfinite(value));
}

TEST(GradientTest, Rmsnorm) {
  const RmsNormShape shape{3, 5, 1e-3};
  auto x = random_values(15, 1), w = random_values(5, 2);
  const auto dy = random_values(15, 3);
  std::vector<double> y(15), rstd(3), dx(15), dw(5);
  const auto loss = [&] {
    rmsnorm_forward<double>(shape, x.data(), w.data(), y.data(), rstd.data());
    return dot(y, dy);
  };
  loss();
  rmsnorm_backward<double>(shape, {x.data(), w.data(), rstd.data(), dy.data(), dx.data(), dw.data()});
  expect_gradient(x, dx, loss);
  expect_gradient(w, dw, loss);
}

TEST(GradientTest, Rope) {
  const RopeShape shape{1, 4, 2, 6, 12};
  std::vector<double> cosine(12), sine(12);
  fill_rope_table<double>(4, 6, 100.0, {cosine.data(), sine.data()});
  auto x = random_values(48, 1);
  const auto dy = random_values(48, 2);
  auto dx = dy;
  rope_in_place<double>(shape, {cosine.data(), sine.data()}, -1, dx.data());
  expect_gradient(x, dx, [&] {
    auto y = x;
    rope_in_place<double>(shape, {cosine.data(), sine.data()}, +1, y.data());
    return dot(y, dy);
  });
}

TEST(GradientTest, Swiglu) {
  auto x = random_values(24, 1);
  const auto dy = random_values(12, 2);
  std::vector<double> y(12), dx(24);
  swiglu_backward<double>({3, 4}, x.data(), dy.data(), dx.data());
  expect_gradient(x, dx, [&] {
    swiglu_forward<double>({3, 4}, x.data(), y.data());
    return dot(y, dy);
  });
}

}  // namespace
}  // namespace tprimat
