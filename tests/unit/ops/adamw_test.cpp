#include "ops/adamw.h"

#include "device/parallel.h"
#include "op_test.h"
#include "ops/reference/adamw.h"

namespace tprimat::engine {
namespace {

// Weights, their states and gradients of several ranges one after the other.
template <class T>
struct Trained {
  using A = Accum<T>;
  explicit Trained(const std::vector<double>& start) : master(narrowed<A>(start)), m(start.size()), v(start.size()) {
    weight.resize(start.size());
  }
  // Lengths around those of vectors, an empty range, and one that two threads share.
  std::vector<AdamwRange<T>> ranges(const std::vector<A>& gradient) {
    std::vector<AdamwRange<T>> result;
    size_t at = 0;
    for (const size_t count : {1u, 200u, 0u, 7u, 64u, 500u, 3u}) {
      T* rounded_weights = weight.data() + at;
      if constexpr (std::is_same_v<T, A>) rounded_weights = master.data() + at;
      const double decay = count > 100 ? 0.1 : 0.0;
      result.push_back({static_cast<int64_t>(count), decay, gradient.data() + at, master.data() + at, m.data() + at,
                        v.data() + at, rounded_weights});
      at += count;
    }
    return result;
  }
  static constexpr int64_t k_count = 1 + 200 + 7 + 64 + 500 + 3;

  std::vector<A> master, m, v;
  std::vector<T> weight;
};

template <class T>
class FastAdamw : public FastOp<T> {};
TYPED_TEST_SUITE(FastAdamw, FastTypes);

TYPED_TEST(FastAdamw, MatchesReferenceOverManySteps) {
  using T = TypeParam;
  for_each_target([] {
    const auto start = rounded<float>(random_values(Trained<T>::k_count, 1));
    Trained<double> expected(start);
    Trained<T> fast(start);
    for (int64_t step = 1; step <= 20; ++step) {
      const auto g = rounded<float>(random_values(Trained<T>::k_count, static_cast<uint64_t>(10 + step)));
      const auto g_t = narrowed<float>(g);
      const AdamwStep s{1e-2, 0.9, 0.95, 1e-8, 0.5, step};
      reference::adamw_update_all<double>(s, expected.ranges(g));
      ops<T>().adamw(s, fast.ranges(g_t));
    }
    expect_close(widened(fast.master), expected.master, 3e-6);
    expect_close(widened(fast.m), expected.m, 3e-6);
    expect_close(widened(fast.v), expected.v, 3e-6);
    for (size_t i = 0; i < fast.weight.size() && !std::is_same_v<T, float>; ++i)
      ASSERT_EQ(fast.weight[i], narrow<T>(fast.master[i]));
  });
}

TEST(AdamwTest, ThreadsDoNotChangeTheResult) {
  const auto start = rounded<float>(random_values(Trained<bf16>::k_count, 1));
  const auto g = narrowed<float>(random_values(Trained<bf16>::k_count, 2));
  std::vector<std::vector<float>> results;
  for (const int64_t threads : {1, 2, 5}) {
    set_thread_count(threads);
    Trained<bf16> trained(start);
    ops<bf16>().adamw({1e-2, 0.9, 0.95, 1e-8, 1.0, 3}, trained.ranges(g));
    results.push_back(trained.master);
  }
  set_thread_count(0);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// Enough to be stored past the caches, at addresses that are aligned for vectors and at others.
TEST(AdamwTest, ManyWeightsAreAsFew) {
  constexpr int64_t k_many = (4 << 20) + 100, k_part = 1000;
  const auto g = narrowed<float>(random_values(k_many, 1)), start = narrowed<float>(random_values(k_many, 2));
  const AdamwStep step{1e-2, 0.9, 0.95, 1e-8, 1.0, 3};
  struct States {
    std::vector<float> master, m, v;
    std::vector<bf16> weight;
    AdamwRange<bf16> range(const std::vector<float>& gradient, int64_t first, int64_t count) {
      const auto at = static_cast<size_t>(first);
      return {count, 0.1, gradient.data() + at, master.data() + at, m.data() + at, v.data() + at, weight.data() + at};
    }
  };
  const std::vector<float> none(start.size());
  set_thread_count(2);
  States together{start, none, none, std::vector<bf16>(start.size())}, apart = together;
  ops<bf16>().adamw(step,
                    std::vector{together.range(g, 0, 1), together.range(g, 1, 31), together.range(g, 32, k_many - 32)});
  for (int64_t first = 0; first < k_many; first += k_part)
    ops<bf16>().adamw(step, std::vector{apart.range(g, first, std::min(k_part, k_many - first))});
  set_thread_count(0);
  EXPECT_EQ(together.weight, apart.weight);
  EXPECT_EQ(together.master, apart.master);
}

TEST(AdamwTest, NoRangesAreNoWork) { ops<float>().adamw({}, {}); }

}  // namespace
}  // namespace tprimat::engine
