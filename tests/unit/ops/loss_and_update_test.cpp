#include <algorithm>
#include <limits>

#include "op_test.h"
#include "ops/reference/adamw.h"
#include "ops/reference/cross_entropy.h"
#include "ops/reference/elementwise.h"
#include "ops/reference/embedding.h"
#include "ops/reference/matmul.h"

namespace tprimat {
namespace {

template <class T>
class FastLoss : public FastOp<T> {};
TYPED_TEST_SUITE(FastLoss, FastTypes);

TYPED_TEST(FastLoss, CrossEntropyMatchesReference) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t vocab : {2, 33, 1000}) {
      const CrossEntropyShape shape{4, vocab};
      const std::vector<int32_t> targets{0, 1, static_cast<int32_t>(vocab - 1), static_cast<int32_t>(vocab / 2)};
      auto logits = rounded<float>(random_values(4 * vocab, 1, 5.0));
      auto logits_t = narrowed<float>(logits);
      std::vector<double> losses(4), gradient(logits.size());
      reference::cross_entropy<double>(shape, {logits.data(), targets.data(), 0.25, losses.data(), gradient.data()});
      std::vector<float> losses_t(4);
      std::vector<T> gradient_t(logits.size());
      cross_entropy<T>(shape, {logits_t.data(), targets.data(), 0.25, losses_t.data(), gradient_t.data()});
      expect_close(widened(losses_t), losses, 3e-6);
      expect_close(widened(gradient_t), gradient, tolerance_of<T>());
    }
  });
}

TYPED_TEST(FastLoss, CrossEntropyCarriesNan) {
  using T = TypeParam;
  std::vector<float> logits(40, 0.5f), losses(1);
  logits[3] = std::numeric_limits<float>::quiet_NaN();
  const int32_t target = 1;
  std::vector<T> gradient(40);
  cross_entropy<T>({1, 40}, {logits.data(), &target, 1.0, losses.data(), gradient.data()});
  EXPECT_TRUE(std::isnan(losses[0]));
}

TYPED_TEST(FastLoss, AdamwMatchesReferenceOverManySteps) {
  using T = TypeParam;
  for_each_target([] {
    const int64_t count = 131;
    std::vector<double> master = rounded<float>(random_values(count, 1)), m(131), v(131), weight(131);
    std::vector<float> master_t = narrowed<float>(master), m_t(131), v_t(131);
    std::vector<T> weight_t(131);
    for (int64_t step = 1; step <= 20; ++step) {
      const auto g = rounded<float>(random_values(count, static_cast<uint64_t>(10 + step)));
      const auto g_t = narrowed<float>(g);
      const AdamwStep s{1e-2, 0.9, 0.95, 1e-8, 0.1, 0.5, step};
      reference::adamw_update<double>(s, {count, g.data(), master.data(), m.data(), v.data(), weight.data()});
      T* const rounded_weights = [&] {
        if constexpr (std::is_same_v<T, float>)
          return master_t.data();
        else
          return weight_t.data();
      }();
      adamw_update<T>(s, {count, g_t.data(), master_t.data(), m_t.data(), v_t.data(), rounded_weights});
    }
    expect_close(widened(master_t), master, 3e-6);
    expect_close(widened(m_t), m, 3e-6);
    expect_close(widened(v_t), v, 3e-6);
    if constexpr (std::is_same_v<T, bf16>) expect_close(widened(weight_t), rounded<bf16>(master), 1e-3);
  });
}

TYPED_TEST(FastLoss, ElementwiseMatchesReference) {
  using T = TypeParam;
  for_each_target([] {
    const auto a = rounded<T>(random_values(5 * 37, 1)), b = rounded<T>(random_values(5 * 37, 2));
    const auto a_t = narrowed<T>(a), b_t = narrowed<T>(b);
    std::vector<double> sum(a.size()), columns(37, 1.0), biased = a;
    std::vector<T> sum_t(a.size()), biased_t = a_t;
    std::vector<float> columns_t(37, 1.0f);
    reference::add(static_cast<int64_t>(a.size()), a.data(), b.data(), sum.data());
    reference::add_column_sums(5, 37, a.data(), columns.data());
    reference::add_bias(5, 37, b.data(), biased.data());
    add(static_cast<int64_t>(a.size()), a_t.data(), b_t.data(), sum_t.data());
    add_column_sums(5, 37, a_t.data(), columns_t.data());
    add_bias(5, 37, b_t.data(), biased_t.data());
    expect_close(widened(sum_t), sum, tolerance_of<T>());
    expect_close(widened(columns_t), columns, 3e-6);
    expect_close(widened(biased_t), biased, tolerance_of<T>());
  });
}

TEST(ElementwiseTest, SumOfSquaresAddsUpLongVectors) {
  for_each_target([] {
    const auto x = rounded<float>(random_values(100003, 1));
    const auto x_t = narrowed<float>(x);
    EXPECT_NEAR(sum_of_squares<float>(100003, x_t.data()) / reference::sum_of_squares(100003, x.data()), 1.0, 1e-6);
  });
}

TEST(ElementTest, VectorRoundingIsTheScalarRounding) {
  for_each_target([] {
    std::vector<float> values;
    for (uint32_t bits = 0; bits < 0xFFFF0000u; bits += 0x1357) values.push_back(std::bit_cast<float>(bits));
    std::erase_if(values, [](float value) { return std::isnan(value); });
    std::vector<bf16> rounded_values(values.size());
    convert<bf16>(static_cast<int64_t>(values.size()), values.data(), rounded_values.data());
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(rounded_values[i].bits, to_bf16(values[i]).bits) << values[i];
  });
}

TEST(EmbeddingTest, GathersAndAddsUpRepeatedTokens) {
  const std::vector<int32_t> tokens{2, 0, 2};
  const std::vector<float> table{1, 2, 3, 4, 5, 6};
  std::vector<float> y(6), dtable(6);
  embedding_forward<float>({3, 2}, tokens.data(), table.data(), y.data());
  EXPECT_EQ(y, (std::vector<float>{5, 6, 1, 2, 5, 6}));
  embedding_backward<float>({3, 2}, tokens.data(), y.data(), dtable.data());
  EXPECT_EQ(dtable, (std::vector<float>{1, 2, 0, 0, 10, 12}));
}

TEST(GradientTest, CrossEntropy) {
  auto logits = random_values(3 * 7, 1, 2.0);
  const std::vector<int32_t> targets{6, 0, 3};
  std::vector<double> losses(3), gradient(21);
  const auto loss = [&] {
    auto copy = logits;
    cross_entropy<double>({3, 7}, {copy.data(), targets.data(), 0.5, losses.data(), gradient.data()});
    return 0.5 * (losses[0] + losses[1] + losses[2]);
  };
  loss();
  const auto analytic = gradient;
  expect_gradient(logits, analytic, loss);
}

TEST(GradientTest, Embedding) {
  const std::vector<int32_t> tokens{1, 1, 0};
  auto table = random_values(3 * 4, 1);
  const auto dy = random_values(3 * 4, 2);
  std::vector<double> y(12), dtable(12);
  embedding_backward<double>({3, 4}, tokens.data(), dy.data(), dtable.data());
  expect_gradient(table, dtable, [&] {
    embedding_forward<double>({3, 4}, tokens.data(), table.data(), y.data());
    return dot(y, dy);
  });
}

TEST(GradientTest, Matmul) {
  auto a = random_values(3 * 4, 1), b = random_values(4 * 5, 2);
  const auto dy = random_values(3 * 5, 3);
  std::vector<double> y(15), da(12), db(20);
  const auto a_view = matrix(static_cast<const double*>(a.data()), 3, 4),
             b_view = matrix(static_cast<const double*>(b.data()), 4, 5);
  const auto dy_view = matrix(dy.data(), 3, 5);
  matmul<double, double>(dy_view, transposed(b_view), matrix(da.data(), 3, 4));
  matmul<double, double>(transposed(a_view), dy_view, matrix(db.data(), 4, 5));
  const auto loss = [&] {
    matmul<double, double>(a_view, b_view, matrix(y.data(), 3, 5));
    return dot(y, dy);
  };
  expect_gradient(a, da, loss);
  expect_gradient(b, db, loss);
}

TEST(GradientTest, BiasAndResidual) {
  auto bias = random_values(3, 1);
  const auto x = random_values(12, 2), dy = random_values(12, 3);
  std::vector<double> dbias(3);
  add_column_sums<double>(4, 3, dy.data(), dbias.data());
  expect_gradient(bias, dbias, [&] {
    auto y = x;
    add_bias<double>(4, 3, bias.data(), y.data());
    add<double>(12, y.data(), x.data(), y.data());
    return dot(y, dy);
  });
}

}  // namespace
}  // namespace tprimat
