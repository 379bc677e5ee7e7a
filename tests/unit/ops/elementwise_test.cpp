#include "ops/elementwise.h"

#include <limits>

#include "op_test.h"
#include "ops/embedding.h"
#include "ops/reference/elementwise.h"

namespace tprimat::engine {
namespace {

template <class T>
class FastElementwise : public FastOp<T> {};
TYPED_TEST_SUITE(FastElementwise, FastTypes);

TYPED_TEST(FastElementwise, MatchesReference) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t rows : {0, 5}) {
      const auto a = rounded<T>(random_values(rows * 37, 1)), b = rounded<T>(random_values(5 * 37, 2));
      const auto a_t = narrowed<T>(a), b_t = narrowed<T>(b);
      std::vector<double> sum(a.size()), columns(37, 1.0), biased = a;
      std::vector<T> sum_t(a.size()), biased_t = a_t;
      std::vector<float> columns_t(37, 1.0f);
      reference::add(rows * 37, a.data(), b.data(), sum.data());
      reference::add_column_sums(rows, 37, a.data(), columns.data());
      reference::add_bias(rows, 37, b.data(), biased.data());
      ops<T>().add(rows * 37, a_t.data(), b_t.data(), sum_t.data());
      ops<T>().add_column_sums(rows, 37, a_t.data(), columns_t.data());
      ops<T>().add_bias(rows, 37, b_t.data(), biased_t.data());
      expect_close(widened(sum_t), sum, tolerance_of<T>());
      expect_close(widened(columns_t), columns, 3e-6);
      expect_close(widened(biased_t), biased, tolerance_of<T>());
    }
  });
}

TEST(ElementwiseTest, SumOfSquaresAddsUpLongVectors) {
  for_each_target([] {
    const auto x = rounded<float>(random_values(100003, 1));
    const auto x_t = narrowed<float>(x);
    const SquaresRange<float> fast{x_t.data(), 100003};
    const SquaresRange<double> exact{x.data(), 100003};
    EXPECT_NEAR(ops<float>().sum_of_squares({&fast, 1}) / ops<double>().sum_of_squares({&exact, 1}), 1.0, 1e-6);
  });
}

TEST(ElementwiseTest, AllFiniteSeesEveryPlace) {
  constexpr double k_bad[] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity()};
  for_each_target([&] {
    std::vector<float> x(69, std::numeric_limits<float>::max());
    x[1] = -x[0];
    EXPECT_TRUE(all_finite(69, x.data()));
    EXPECT_TRUE(all_finite(0, x.data()));
    for (const double bad : k_bad) {
      for (size_t at = 0; at < x.size(); ++at) {
        auto spoiled = x;
        spoiled[at] = static_cast<float>(bad);
        EXPECT_FALSE(all_finite(69, spoiled.data())) << bad << " at " << at;
      }
    }
  });
}

template <class T>
class EmbeddingOf : public ::testing::Test {};
using AllTypes = ::testing::Types<float, bf16, f16, double>;
TYPED_TEST_SUITE(EmbeddingOf, AllTypes);

TYPED_TEST(EmbeddingOf, GathersAndAddsUpRepeatedTokens) {
  using T = TypeParam;
  const std::vector<int32_t> tokens{2, 0, -1, 2};
  const auto table = narrowed<T>({1, 2, 3, 4, 5, 6});
  std::vector<T> y(8, table[0]);
  ops<T>().embedding_forward({4, 2}, tokens.data(), table.data(), y.data());
  EXPECT_EQ(widened(y), (std::vector<double>{5, 6, 1, 2, 0, 0, 5, 6}));
  const auto dy = narrowed<T>({5, 6, 1, 2, 7, 7, 5, 6});
  std::vector<Accum<T>> dtable(6);
  ops<T>().embedding_backward({4, 2}, tokens.data(), dy.data(), dtable.data());
  EXPECT_EQ(dtable, (std::vector<Accum<T>>{1, 2, 0, 0, 10, 12}));
  if (ops<T>().embedding_backward_squares == nullptr) return;
  const double growth = ops<T>().embedding_backward_squares({4, 2}, tokens.data(), dy.data(), dtable.data());
  EXPECT_EQ(dtable, (std::vector<Accum<T>>{2, 4, 0, 0, 20, 24}));
  EXPECT_EQ(growth, 3.0 * (1 + 4 + 100 + 144));
}

TEST(GradientTest, Embedding) {
  const std::vector<int32_t> tokens{1, 1, 0};
  auto table = random_values(3 * 4, 1);
  const auto dy = random_values(3 * 4, 2);
  std::vector<double> y(12), dtable(12);
  ops<double>().embedding_backward({3, 4}, tokens.data(), dy.data(), dtable.data());
  expect_gradient(table, dtable, [&] {
    ops<double>().embedding_forward({3, 4}, tokens.data(), table.data(), y.data());
    return dot(y, dy);
  });
}

TEST(GradientTest, BiasAndResidual) {
  auto bias = random_values(3, 1);
  const auto x = random_values(12, 2), dy = random_values(12, 3);
  std::vector<double> dbias(3);
  ops<double>().add_column_sums(4, 3, dy.data(), dbias.data());
  expect_gradient(bias, dbias, [&] {
    auto y = x;
    ops<double>().add_bias(4, 3, bias.data(), y.data());
    ops<double>().add(12, y.data(), x.data(), y.data());
    return dot(y, dy);
  });
}

}  // namespace
}  // namespace tprimat::engine
