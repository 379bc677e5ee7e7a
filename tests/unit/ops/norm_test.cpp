#include "op_test.h"
#include "ops/reference/layernorm.h"
#include "ops/reference/rmsnorm.h"

namespace tprimat::engine {
namespace {

template <class T>
class FastNorm : public FastOp<T> {};
TYPED_TEST_SUITE(FastNorm, FastTypes);

// Widths around the lengths of vectors: whole ones, tails, shorter than one.
const int64_t k_norm_widths[] = {1, 7, 16, 64, 97, 768};

TYPED_TEST(FastNorm, RmsnormMatchesReference) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t cols : k_norm_widths) {
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
      ops<T>().rmsnorm_forward(shape, x_t.data(), w_t.data(), y_t.data(), rstd_t.data());
      ops<T>().rmsnorm_backward(shape, {x_t.data(), w_t.data(), rstd_t.data(), dy_t.data(), dx_t.data(), dw_t.data()});
      expect_close(widened(y_t), y, tolerance_of<T>());
      expect_close(widened(rstd_t), rstd, 3e-6);
      expect_close(widened(dx_t), dx_expected, tolerance_of<T>());
      expect_close(widened(dw_t), dw_expected, 3e-6);
    }
  });
}

// The statistics belong to the sum as it is stored, so the fused form equals the two steps bit for bit.
TYPED_TEST(FastNorm, AddRmsnormIsAddThenRmsnorm) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t cols : k_norm_widths) {
      const RmsNormShape shape{5, cols, 1e-5};
      const auto a = narrowed<T>(random_values(5 * cols, 1)), b = narrowed<T>(random_values(5 * cols, 2));
      const auto w = narrowed<T>(random_values(cols, 3));
      std::vector<T> sum(a.size()), y(a.size()), fused_y(a.size());
      std::vector<float> rstd(5), fused_rstd(5);
      ops<T>().add(5 * cols, a.data(), b.data(), sum.data());
      ops<T>().rmsnorm_forward(shape, sum.data(), w.data(), y.data(), rstd.data());
      auto fused_sum = a;
      ops<T>().add_rmsnorm_forward(shape, {fused_sum.data(), b.data(), fused_sum.data()}, w.data(), fused_y.data(),
                                   fused_rstd.data());
      EXPECT_EQ(fused_sum, sum);
      EXPECT_EQ(fused_y, y);
      EXPECT_EQ(fused_rstd, rstd);
    }
  });
}

// Enough to be stored past the caches, in rows that are aligned for vectors and in others.
TYPED_TEST(FastNorm, LargeResultsAreAsSmallOnes) {
  using T = TypeParam;
  constexpr int64_t k_rows = 700, k_some = 7;
  for_each_target([] {
    for (const int64_t cols : {768, 769}) {
      const int64_t count = k_rows * cols;
      const auto x = narrowed<T>(random_values(count, 1)), w = narrowed<T>(random_values(cols, 2));
      std::vector<T> small(x.size()), large(x.size() + 64);
      T* const y = large.data() + (64 - reinterpret_cast<uintptr_t>(large.data()) % 64) / sizeof(T);
      std::vector<float> mean(k_rows), rstd(k_rows);
      const auto expect_equal = [&] { EXPECT_TRUE(std::equal(small.begin(), small.end(), y)) << cols << " columns"; };
      for (int64_t at = 0; at < count; at += k_some * cols)
        ops<T>().rmsnorm_forward({k_some, cols, 1e-5}, x.data() + at, w.data(), small.data() + at, rstd.data());
      ops<T>().rmsnorm_forward({k_rows, cols, 1e-5}, x.data(), w.data(), y, rstd.data());
      expect_equal();
      for (int64_t at = 0; at < count; at += k_some * cols)
        ops<T>().layernorm_forward({k_some, cols, 1e-5}, x.data() + at, {w.data(), w.data()},
                                   {small.data() + at, mean.data(), rstd.data()});
      ops<T>().layernorm_forward({k_rows, cols, 1e-5}, x.data(), {w.data(), w.data()}, {y, mean.data(), rstd.data()});
      expect_equal();
    }
  });
}

TYPED_TEST(FastNorm, LayernormMatchesReference) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t cols : {2, 7, 16, 64, 97, 768}) {
      const LayerNormShape shape{5, cols, 1e-5};
      auto x = random_values(5 * cols, 1, 3.0);
      for (double& value : x) value += 4.0;  // far from centred
      x = rounded<T>(x);
      const auto w = rounded<T>(random_values(cols, 2)), bias = rounded<T>(random_values(cols, 5));
      const auto dy = rounded<T>(random_values(5 * cols, 3)), dx = rounded<T>(random_values(5 * cols, 4));
      std::vector<double> y(x.size()), mean(5), rstd(5), dx_expected = dx, dw_expected(w.size(), 1.0),
                                                         db_expected(w.size(), 2.0);
      reference::layernorm_forward<double>(shape, x.data(), {w.data(), bias.data()},
                                           {y.data(), mean.data(), rstd.data()});
      reference::layernorm_backward<double>(shape, {x.data(), w.data(), mean.data(), rstd.data(), dy.data(),
                                                    dx_expected.data(), dw_expected.data(), db_expected.data()});

      const auto x_t = narrowed<T>(x), w_t = narrowed<T>(w), bias_t = narrowed<T>(bias), dy_t = narrowed<T>(dy);
      std::vector<T> y_t(x.size()), dx_t = narrowed<T>(dx);
      std::vector<float> mean_t(5), rstd_t(5), dw_t(w.size(), 1.0f), db_t(w.size(), 2.0f);
      ops<T>().layernorm_forward(shape, x_t.data(), {w_t.data(), bias_t.data()},
                                 {y_t.data(), mean_t.data(), rstd_t.data()});
      ops<T>().layernorm_backward(shape, {x_t.data(), w_t.data(), mean_t.data(), rstd_t.data(), dy_t.data(),
                                          dx_t.data(), dw_t.data(), db_t.data()});
      expect_close(widened(y_t), y, tolerance_of<T>());
      expect_close(widened(mean_t), mean, 3e-6);
      expect_close(widened(rstd_t), rstd, 3e-6);
      expect_close(widened(dx_t), dx_expected, tolerance_of<T>());
      expect_close(widened(dw_t), dw_expected, 3e-6);
      expect_close(widened(db_t), db_expected, 3e-6);
    }
  });
}

TYPED_TEST(FastNorm, AddLayernormIsAddThenLayernorm) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t cols : k_norm_widths) {
      const LayerNormShape shape{5, cols, 1e-5};
      const auto a = narrowed<T>(random_values(5 * cols, 1)), b = narrowed<T>(random_values(5 * cols, 2));
      const auto w = narrowed<T>(random_values(cols, 3)), bias = narrowed<T>(random_values(cols, 4));
      std::vector<T> sum(a.size()), y(a.size()), fused_sum(a.size()), fused_y(a.size());
      std::vector<float> mean(5), rstd(5), fused_mean(5), fused_rstd(5);
      ops<T>().add(5 * cols, a.data(), b.data(), sum.data());
      ops<T>().layernorm_forward(shape, sum.data(), {w.data(), bias.data()}, {y.data(), mean.data(), rstd.data()});
      ops<T>().add_layernorm_forward(shape, {a.data(), b.data(), fused_sum.data()}, {w.data(), bias.data()},
                                     {fused_y.data(), fused_mean.data(), fused_rstd.data()});
      EXPECT_EQ(fused_sum, sum);
      EXPECT_EQ(fused_y, y);
      EXPECT_EQ(fused_mean, mean);
      EXPECT_EQ(fused_rstd, rstd);
    }
  });
}

TYPED_TEST(FastNorm, HeadNormMatchesReference) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t head_dim : {7, 20, 64, 128}) {
      const HeadNormShape shape{5, 3, head_dim, 4 * head_dim + 1, 3 * head_dim + 2, 1e-6};
      const int64_t x_count = 5 * shape.x_row_stride, y_count = 5 * shape.y_row_stride;
      const auto x = rounded<T>(random_values(x_count, 1, 3.0)), w = rounded<T>(random_values(head_dim, 2));
      const auto dy = rounded<T>(random_values(y_count, 3)), before = rounded<T>(random_values(x_count, 4));
      std::vector<double> y(dy.size()), rstd(15), dx = before, dw(w.size(), 1.0);
      reference::head_norm_forward(shape, x.data(), w.data(), y.data(), rstd.data());
      reference::head_norm_backward<double>(shape, {x.data(), w.data(), rstd.data(), dy.data(), dx.data(), dw.data()});

      const auto x_t = narrowed<T>(x), w_t = narrowed<T>(w), dy_t = narrowed<T>(dy);
      std::vector<T> y_t(y.size()), dx_t = narrowed<T>(before);
      std::vector<float> rstd_t(15), dw_t(w.size(), 1.0f);
      ops<T>().head_norm_forward(shape, x_t.data(), w_t.data(), y_t.data(), rstd_t.data());
      ops<T>().head_norm_backward(shape,
                                  {x_t.data(), w_t.data(), rstd_t.data(), dy_t.data(), dx_t.data(), dw_t.data()});
      expect_close(widened(y_t), y, tolerance_of<T>());
      expect_close(widened(rstd_t), rstd, 3e-6);
      expect_close(widened(dx_t), dx, tolerance_of<T>());
      expect_close(widened(dw_t), dw, 3e-6);
    }
  });
}

TEST(NormTest, NoRowsLeaveTheGradientsAsTheyWere) {
  const std::vector<float> w(8, 1.0f);
  std::vector<float> sums(8, 3.0f);
  ops<float>().rmsnorm_forward({0, 8, 1e-5}, nullptr, w.data(), nullptr, nullptr);
  ops<float>().rmsnorm_backward({0, 8, 1e-5}, {nullptr, w.data(), nullptr, nullptr, nullptr, sums.data()});
  ops<float>().layernorm_backward({0, 8, 1e-5},
                                  {nullptr, w.data(), nullptr, nullptr, nullptr, nullptr, sums.data(), sums.data()});
  ops<float>().head_norm_backward({0, 2, 8, 16, 16, 1e-5}, {nullptr, w.data(), nullptr, nullptr, nullptr, sums.data()});
  EXPECT_EQ(sums, std::vector<float>(8, 3.0f));
}

TEST(GradientTest, Rmsnorm) {
  const RmsNormShape shape{3, 5, 1e-3};
  auto x = random_values(15, 1), w = random_values(5, 2);
  const auto dy = random_values(15, 3), zero = std::vector<double>(15);
  std::vector<double> y(15), sum(15), rstd(3), dx(15), dw(5);
  const auto loss = [&] {
    ops<double>().add_rmsnorm_forward(shape, {x.data(), zero.data(), sum.data()}, w.data(), y.data(), rstd.data());
    return dot(y, dy);
  };
  loss();
  ops<double>().rmsnorm_backward(shape, {x.data(), w.data(), rstd.data(), dy.data(), dx.data(), dw.data()});
  expect_gradient(x, dx, loss);
  expect_gradient(w, dw, loss);
}

TEST(GradientTest, Layernorm) {
  const LayerNormShape shape{3, 5, 1e-3};
  auto x = random_values(15, 1), w = random_values(5, 2), bias = random_values(5, 4);
  const auto dy = random_values(15, 3), zero = std::vector<double>(15);
  std::vector<double> y(15), sum(15), mean(3), rstd(3), dx(15), dw(5), db(5);
  const auto loss = [&] {
    ops<double>().add_layernorm_forward(shape, {x.data(), zero.data(), sum.data()}, {w.data(), bias.data()},
                                        {y.data(), mean.data(), rstd.data()});
    return dot(y, dy);
  };
  loss();
  ops<double>().layernorm_backward(
      shape, {x.data(), w.data(), mean.data(), rstd.data(), dy.data(), dx.data(), dw.data(), db.data()});
  expect_gradient(x, dx, loss);
  expect_gradient(w, dw, loss);
  expect_gradient(bias, db, loss);
}

TEST(GradientTest, HeadNorm) {
  const HeadNormShape shape{2, 2, 4, 8, 8, 1e-3};
  auto x = random_values(16, 1), w = random_values(4, 2);
  const auto dy = random_values(16, 3);
  std::vector<double> y(16), rstd(4), dx = dy, dw(4);
  const auto loss = [&] {
    ops<double>().head_norm_forward(shape, x.data(), w.data(), y.data(), rstd.data());
    return dot(y, dy);
  };
  loss();
  ops<double>().head_norm_backward(shape,
                                   {x.data(), w.data(), rstd.data(), dx.data(), dx.data(), dw.data()});  // in place
  expect_gradient(x, dx, loss);
  expect_gradient(w, dw, loss);
}

}  // namespace
}  // namespace tprimat::engine
