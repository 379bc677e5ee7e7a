#include "ops/op_table.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "device/parallel.h"
#include "op_test.h"
#include "ops/reference/adamw.h"

namespace tprimat::engine {
namespace {

template <class T>
class StochasticRounding : public ::testing::Test {};
using ShortTypes = ::testing::Types<bf16, f16>;
TYPED_TEST_SUITE(StochasticRounding, ShortTypes);

// Over all chances the mean is the value, and nothing but the two neighbours comes out.
TYPED_TEST(StochasticRounding, MeanOverAllChancesIsTheValue) {
  using T = TypeParam;
  std::vector<double> values = random_values(20, std::random_device{}());
  for (const double value : {1.0, 1.001, -1.999, 3e-5, 1e-6, 2e-8, 65503.0, 0.0}) values.push_back(value);
  for (const double drawn : values) {
    const auto value = static_cast<float>(drawn);
    double sum = 0;
    float least = std::numeric_limits<float>::infinity(), greatest = -least;
    for (uint32_t chance = 0; chance < 65536; ++chance) {
      const float result = widen(round_by_chance<T>(value, chance));
      sum += static_cast<double>(result);
      least = std::min(least, result);
      greatest = std::max(greatest, result);
    }
    EXPECT_LE(least, value);
    EXPECT_GE(greatest, value);
    const double gap = static_cast<double>(greatest) - static_cast<double>(least);
    EXPECT_NEAR(sum / 65536, static_cast<double>(value), gap / 8192) << value;
    const float nearest = widen(narrow<T>(value));
    EXPECT_TRUE(nearest == least || nearest == greatest) << value;
  }
}

TYPED_TEST(StochasticRounding, WhatTheFormatHoldsStays) {
  using T = TypeParam;
  for (const double drawn : random_values(200, 3)) {
    const T exact = narrow<T>(static_cast<float>(drawn));
    for (const uint32_t chance : {0u, 1u, 40000u, 65535u}) EXPECT_EQ(round_by_chance<T>(widen(exact), chance), exact);
  }
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(widen(round_by_chance<T>(infinite, 65535)), infinite);
  EXPECT_EQ(widen(round_by_chance<T>(-infinite, 65535)), -infinite);
  for (const uint32_t chance : {0u, 65535u})
    EXPECT_TRUE(std::isnan(widen(round_by_chance<T>(std::bit_cast<float>(0x7F800001u), chance))));
}

// Neighbouring values, steps and seeds draw bits of their own, all of them even.
TEST(StochasticRoundingBits, AreEvenAndIndependent) {
  constexpr int64_t k_draws = 100'000;
  for (const auto& [key, other] :
       {std::pair(rounding_key(1, 1), rounding_key(1, 2)), std::pair(rounding_key(1, 1), rounding_key(2, 1)),
        std::pair(rounding_key(7, 5), rounding_key(7, 5) + 1)}) {
    std::vector<int64_t> ones(64), equal(64), follows(64);
    for (int64_t i = 0; i < k_draws; ++i) {
      const uint64_t bits = rounding_bits(key, i), same = ~(bits ^ rounding_bits(other, i));
      const uint64_t next = ~(bits ^ rounding_bits(key, i + 1));
      for (size_t bit = 0; bit < 64; ++bit) {
        ones[bit] += static_cast<int64_t>(bits >> bit & 1);
        equal[bit] += static_cast<int64_t>(same >> bit & 1);
        follows[bit] += static_cast<int64_t>(next >> bit & 1);
      }
    }
    const double allowed = 5 * 0.5 * std::sqrt(static_cast<double>(k_draws));
    for (const auto& counts : {ones, equal, follows})
      for (const int64_t count : counts) EXPECT_NEAR(static_cast<double>(count), k_draws / 2.0, allowed);
  }
}

template <class T, class M>
struct CompactTrained {
  std::vector<Accum<T>> master;
  std::vector<M> m, v;
  std::vector<T> w;

  CompactTrained(const std::vector<double>& start, bool has_master)
      : m(start.size()), v(start.size()), w(narrowed<T>(start)) {
    if (has_master) master = narrowed<Accum<T>>(start);
  }
  std::vector<CompactAdamwRange<T, M>> ranges(const std::vector<Accum<T>>& gradient,
                                              const std::vector<size_t>& counts) {
    std::vector<CompactAdamwRange<T, M>> result;
    size_t at = 0;
    for (const size_t count : counts) {
      result.push_back({static_cast<int64_t>(count), count > 100 ? 0.1 : 0.0, static_cast<int64_t>(at),
                        gradient.data() + at, master.empty() ? nullptr : master.data() + at, m.data() + at,
                        v.data() + at, w.data() + at});
      at += count;
    }
    return result;
  }
};
const std::vector<size_t> k_compact_counts = {1, 200, 0, 7, 64, 500, 3};
constexpr int64_t k_compact_total = 775;

// Float arithmetic may put few values on the other side of a chance.
template <class V>
size_t count_different(const std::vector<V>& a, const std::vector<V>& b) {
  size_t different = 0;
  for (size_t i = 0; i < a.size(); ++i) different += a[i] == b[i] ? 0 : 1;
  return different;
}

template <class T, class M>
auto compact_adamw() {
  if constexpr (std::is_same_v<M, bf16>)
    return cpu_ops<T>().adamw_bf16_moments;
  else
    return cpu_ops<T>().adamw_compact;
}

template <class T, class M>
void compare_with_reference(bool has_master) {
  const auto start = random_values(k_compact_total, 1);
  const auto gradient = narrowed<float>(random_values(k_compact_total, 2));
  const AdamwStep step{1e-2, 0.9, 0.95, 1e-8, 0.5, 3};
  CompactTrained<T, M> expected(start, has_master), fast(start, has_master);
  reference::adamw_update_compact<T, M>(step, 5, expected.ranges(gradient, k_compact_counts));
  compact_adamw<T, M>()(step, 5, fast.ranges(gradient, k_compact_counts));
  expect_close(widened(fast.w), widened(expected.w), tolerance_of<T>());
  expect_close(widened(fast.m), widened(expected.m), tolerance_of<M>());
  expect_close(widened(fast.v), widened(expected.v), tolerance_of<M>());
  if (!std::is_same_v<T, float>) {
    EXPECT_LE(count_different(fast.w, expected.w), 5u);
  }
  if (!std::is_same_v<M, float>) {
    EXPECT_LE(count_different(fast.m, expected.m), 5u);
  }
  if (has_master) {
    expect_close(widened(fast.master), widened(expected.master), 3e-6);
    EXPECT_EQ(fast.w, narrowed<T>(widened(fast.master)));
  }
}

template <class T>
class CompactAdamw : public FastOp<T> {};
TYPED_TEST_SUITE(CompactAdamw, FastTypes);

TYPED_TEST(CompactAdamw, MatchesTheReference) {
  using T = TypeParam;
  for (const bool has_master : {true, false}) {
    compare_with_reference<T, float>(has_master);
    compare_with_reference<T, bf16>(has_master);
  }
}

// Nothing is rounded where everything is kept in full.
TEST(CompactAdamwTest, FullFormatsAreAdamw) {
  const auto start = random_values(k_compact_total, 1), gradient = random_values(k_compact_total, 2);
  CompactTrained<double, double> compact(start, false);
  auto w = start, m = std::vector<double>(start.size()), v = m;
  for (int64_t step = 1; step <= 5; ++step) {
    const AdamwStep s{1e-2, 0.9, 0.95, 1e-8, 0.5, step};
    cpu_ops<double>().adamw_compact(s, 1, compact.ranges(gradient, {static_cast<size_t>(k_compact_total)}));
    reference::adamw_update<double>(s, {k_compact_total, 0.1, gradient.data(), w.data(), m.data(), v.data(), w.data()});
  }
  EXPECT_EQ(compact.w, w);
  EXPECT_EQ(compact.m, m);
  EXPECT_EQ(compact.v, v);
}

TEST(CompactAdamwTest, ThreadsAndCutsDoNotChangeTheResult) {
  const auto start = random_values(k_compact_total, 1);
  const auto gradient = narrowed<float>(random_values(k_compact_total, 2));
  std::vector<std::vector<bf16>> results;
  for (const int64_t threads : {1, 2, 5}) {
    set_thread_count(threads);
    CompactTrained<bf16, bf16> trained(start, false);
    auto ranges = trained.ranges(gradient, threads == 2 ? std::vector<size_t>{300, 475}
                                                        : std::vector<size_t>{static_cast<size_t>(k_compact_total)});
    for (auto& range : ranges) range.weight_decay = 0.1;
    cpu_ops<bf16>().adamw_bf16_moments({1e-2, 0.9, 0.95, 1e-8, 1.0, 3}, 11, ranges);
    results.push_back(trained.w);
  }
  set_thread_count(0);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// Updates of a tenth of half the distance between two weights, which rounding to the nearest loses all: the mean weight
// moves as that of full precision. The second moment, of which a step changes a thousandth, likewise.
TEST(CompactAdamwTest, SmallUpdatesAreNotLost) {
  constexpr int64_t k_count = 20'000, k_steps = 60;
  const std::vector<double> start(k_count, 1.0);
  const std::vector<float> gradient(k_count, 1.0f);
  CompactTrained<bf16, bf16> compact(start, false);
  std::vector<double> g{1.0}, w{1.0}, m{0.0}, v{0.0};
  for (int64_t step = 1; step <= k_steps; ++step) {
    const AdamwStep s{2e-4, 0.9, 0.999, 1e-8, 1.0, step};
    cpu_ops<bf16>().adamw_bf16_moments(s, 4, compact.ranges(gradient, {k_count}));
    reference::adamw_update<double>(s, {1, 0.1, g.data(), w.data(), m.data(), v.data(), w.data()});
  }
  const auto mean = [](const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  };
  ASSERT_LT(w[0], 0.99);
  EXPECT_NEAR(mean(widened(compact.w)), w[0], 0.02 * (1.0 - w[0]));
  EXPECT_NEAR(mean(widened(compact.m)), m[0], 0.01 * m[0]);
  EXPECT_NEAR(mean(widened(compact.v)), v[0], 0.01 * v[0]);
}

}  // namespace
}  // namespace tprimat::engine
