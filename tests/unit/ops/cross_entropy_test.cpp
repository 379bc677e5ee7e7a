#include "ops/cross_entropy.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "op_test.h"
#include "ops/reference/cross_entropy.h"

namespace tprimat::engine {
namespace {

template <class T>
class FastLoss : public FastOp<T> {};
TYPED_TEST_SUITE(FastLoss, FastTypes);

struct LossInputs {
  explicit LossInputs(int64_t v)
      : vocab(v),
        targets{0, 1, static_cast<int32_t>(v - 1), static_cast<int32_t>(v / 2)},
        logits(rounded<float>(random_values(4 * v, 1, 5.0))) {}
  int64_t vocab;
  std::vector<int32_t> targets;
  std::vector<double> logits;
};

template <class T>
struct LossOutputs {
  explicit LossOutputs(int64_t rows, int64_t vocab)
      : losses(static_cast<size_t>(rows)), gradient(static_cast<size_t>(rows * vocab)) {}
  std::vector<Accum<T>> losses;
  std::vector<T> gradient;
};

LossOutputs<double> expected_of(const LossInputs& in) {
  LossOutputs<double> out(4, in.vocab);
  auto logits = in.logits;
  reference::cross_entropy<double>({4, in.vocab},
                                   {logits.data(), in.targets.data(), 0.25, out.losses.data(), out.gradient.data()});
  return out;
}

TYPED_TEST(FastLoss, MatchesReference) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t vocab : {2, 33, 1000}) {
      const LossInputs in(vocab);
      const auto expected = expected_of(in);
      auto logits = narrowed<float>(in.logits);
      LossOutputs<T> out(4, vocab);
      ops<T>().cross_entropy({4, vocab},
                             {logits.data(), in.targets.data(), 0.25, out.losses.data(), out.gradient.data()});
      expect_close(widened(out.losses), expected.losses, 3e-6);
      expect_close(widened(out.gradient), expected.gradient, tolerance_of<T>());
    }
  });
}

TYPED_TEST(FastLoss, GradientMayLieOverTheLogits) {
  using T = TypeParam;
  for_each_target([] {
    constexpr int64_t k_vocab = 33, k_stride = k_vocab * static_cast<int64_t>(sizeof(float) / sizeof(T));
    const LossInputs in(k_vocab);
    auto apart = narrowed<float>(in.logits), logits = apart;
    LossOutputs<T> expected(4, k_vocab), out(4, k_vocab);
    ops<T>().cross_entropy({4, k_vocab},
                           {apart.data(), in.targets.data(), 0.25, expected.losses.data(), expected.gradient.data()});
    T* const over = reinterpret_cast<T*>(logits.data());
    ops<T>().cross_entropy({4, k_vocab, 0, k_stride},
                           {logits.data(), in.targets.data(), 0.25, out.losses.data(), over});
    for (int64_t r = 0; r < 4; ++r)
      std::memcpy(&out.gradient[static_cast<size_t>(r * k_vocab)], over + r * k_stride, k_vocab * sizeof(T));
    EXPECT_EQ(out.losses, expected.losses);
    EXPECT_EQ(widened(out.gradient), widened(expected.gradient));
  });
}

// Rows of logits `stride` apart, with NaN between them.
template <class A>
std::vector<A> padded(const LossInputs& in, int64_t stride) {
  std::vector<A> rows(static_cast<size_t>(4 * stride), std::numeric_limits<A>::quiet_NaN());
  for (int64_t r = 0; r < 4; ++r)
    for (int64_t v = 0; v < in.vocab; ++v)
      rows[static_cast<size_t>(r * stride + v)] = static_cast<A>(in.logits[static_cast<size_t>(r * in.vocab + v)]);
  return rows;
}

template <class A>
void expect_padding_is_untouched(const std::vector<A>& rows, int64_t vocab, int64_t stride) {
  const A untouched = std::numeric_limits<A>::quiet_NaN();
  for (int64_t r = 0; r < 4; ++r)
    for (int64_t v = vocab; v < stride; ++v)
      ASSERT_EQ(std::memcmp(&rows[static_cast<size_t>(r * stride + v)], &untouched, sizeof untouched), 0)
          << "row " << r << " column " << v;
}

// The gradients lie over logits whose rows are longer than the vocabulary.
template <class T>
void expect_padding_changes_nothing() {
  using A = Accum<T>;
  constexpr int64_t k_ratio = sizeof(A) / sizeof(T);
  for (const int64_t vocab : {2, 33, 64, 1001}) {
    SCOPED_TRACE(vocab);
    const LossInputs in(vocab);
    const int64_t stride = (vocab + 63) / 64 * 64;
    auto dense = narrowed<A>(in.logits), rows = padded<A>(in, stride);
    LossOutputs<T> expected(4, vocab), out(4, vocab);
    ops<T>().cross_entropy({4, vocab},
                           {dense.data(), in.targets.data(), 0.25, expected.losses.data(), expected.gradient.data()});
    T* const over = reinterpret_cast<T*>(rows.data());
    ops<T>().cross_entropy({4, vocab, stride, k_ratio * stride},
                           {rows.data(), in.targets.data(), 0.25, out.losses.data(), over});
    for (int64_t r = 0; r < 4; ++r)
      std::memcpy(&out.gradient[static_cast<size_t>(r * vocab)], over + r * k_ratio * stride,
                  static_cast<size_t>(vocab) * sizeof(T));
    EXPECT_EQ(out.losses, expected.losses);
    EXPECT_EQ(widened(out.gradient), widened(expected.gradient));
    expect_padding_is_untouched(rows, vocab, stride);
  }
}

TYPED_TEST(FastLoss, PaddingIsNeitherReadNorWritten) {
  for_each_target([] { expect_padding_changes_nothing<TypeParam>(); });
}

TEST(ReferenceLoss, PaddingIsNeitherReadNorWritten) { expect_padding_changes_nothing<double>(); }

TYPED_TEST(FastLoss, CarriesNan) {
  using T = TypeParam;
  std::vector<float> logits(40, 0.5f), losses(1);
  logits[3] = std::numeric_limits<float>::quiet_NaN();
  const int32_t target = 1;
  std::vector<T> gradient(40);
  ops<T>().cross_entropy({1, 40}, {logits.data(), &target, 1.0, losses.data(), gradient.data()});
  EXPECT_TRUE(std::isnan(losses[0]));
}

// What one of the ranks that share out the vocabulary holds.
template <class T>
struct ShardOf {
  using A = Accum<T>;
  ShardOf(const LossInputs& in, int64_t first, int64_t end)
      : begin(first), shape{4, end - first, end - first + k_gap, end - first + 2} {
    for (int64_t r = 0; r < 4; ++r) {
      for (int64_t v = first; v < end; ++v)
        logits.push_back(static_cast<A>(in.logits[static_cast<size_t>(r * in.vocab + v)]));
      logits.insert(logits.end(), k_gap, std::numeric_limits<A>::quiet_NaN());
      const int32_t target = in.targets[static_cast<size_t>(r)];
      targets.push_back(target >= first && target < end ? target - static_cast<int32_t>(first) : -1);
    }
    ops<A>().cross_entropy_statistics(shape, logits.data(), targets.data(),
                                      {largest.data(), sum.data(), target_logit.data()});
  }

  static constexpr int64_t k_gap = 3;  // values between two rows
  int64_t begin;
  CrossEntropyShape shape;
  std::vector<A> logits;
  std::vector<int32_t> targets;
  std::vector<A> largest = std::vector<A>(4), sum = largest, target_logit = largest;
};

// What the ranks exchange: the maximum and the two totals. The maximum drops NaN, as that of MPI may.
template <class T>
void combine(std::vector<ShardOf<T>>& shards) {
  using A = Accum<T>;
  std::vector<A> largest(4, -std::numeric_limits<A>::infinity()), sum(4), target_logit(4);
  for (const ShardOf<T>& shard : shards)
    for (size_t r = 0; r < 4; ++r) largest[r] = std::fmax(largest[r], shard.largest[r]);
  for (ShardOf<T>& shard : shards) {
    ops<A>().rescale_exponential_sums(4, shard.largest.data(), largest.data(), shard.sum.data());
    for (size_t r = 0; r < 4; ++r) sum[r] += shard.sum[r], target_logit[r] += shard.target_logit[r];
  }
  for (ShardOf<T>& shard : shards) shard.largest = largest, shard.sum = sum, shard.target_logit = target_logit;
}

template <class T>
LossOutputs<T> sharded_loss(const LossInputs& in, const std::vector<int64_t>& cuts) {
  std::vector<ShardOf<T>> shards;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) shards.emplace_back(in, cuts[i], cuts[i + 1]);
  combine(shards);
  LossOutputs<T> whole(4, in.vocab);
  for (const ShardOf<T>& s : shards) {
    LossOutputs<T> part(4, s.shape.gradient_stride);
    ops<T>().cross_entropy_gradient(s.shape, {s.logits.data(),
                                              s.targets.data(),
                                              {s.largest.data(), s.sum.data(), s.target_logit.data()},
                                              0.25,
                                              part.losses.data(),
                                              part.gradient.data()});
    for (int64_t r = 0; r < 4; ++r)
      std::copy_n(part.gradient.begin() + s.shape.gradient_row(r), s.shape.vocab,
                  whole.gradient.begin() + r * in.vocab + s.begin);
    whole.losses = part.losses;
  }
  return whole;
}

template <class T>
void expect_shards_make_the_whole() {
  for (const int64_t vocab : {2, 33, 1000}) {
    const LossInputs in(vocab);
    const auto expected = expected_of(in);
    const std::vector<int64_t> layouts[] = {{0, vocab}, {0, vocab / 2, vocab}, {0, 1, 1, vocab / 2 + 1, vocab}};
    for (const auto& cuts : layouts) {
      const LossOutputs<T> out = sharded_loss<T>(in, cuts);
      expect_close(widened(out.losses), expected.losses, 3e-6);
      expect_close(widened(out.gradient), expected.gradient, tolerance_of<T>());
    }
  }
}

TYPED_TEST(FastLoss, ShardsMakeTheWhole) {
  for_each_target([] { expect_shards_make_the_whole<TypeParam>(); });
}

TEST(ReferenceLoss, ShardsMakeTheWhole) { expect_shards_make_the_whole<double>(); }

TYPED_TEST(FastLoss, ShardsCarryNanToEveryRank) {
  for_each_target([] {
    LossInputs in(60);
    in.logits[60 + 7] = std::numeric_limits<double>::quiet_NaN();
    const auto out = sharded_loss<TypeParam>(in, {0, 30, 60});
    EXPECT_FALSE(std::isnan(out.losses[0]));
    EXPECT_TRUE(std::isnan(out.losses[1]));
    for (size_t v = 60; v < 120; ++v) EXPECT_TRUE(std::isnan(widen(out.gradient[v]))) << v;
  });
}

TEST(CrossEntropyTest, NoRowsAreNoWork) {
  ops<bf16>().cross_entropy({0, 5}, {nullptr, nullptr, 1.0, nullptr, nullptr});
  ops<float>().cross_entropy_statistics({0, 5}, nullptr, nullptr, {nullptr, nullptr, nullptr});
  ops<f16>().cross_entropy_gradient({0, 5}, {nullptr, nullptr, {nullptr, nullptr, nullptr}, 1.0, nullptr, nullptr});
}

TEST(GradientTest, CrossEntropy) {
  auto logits = random_values(3 * 7, 1, 2.0);
  const std::vector<int32_t> targets{6, 0, 3};
  std::vector<double> losses(3), gradient(21);
  const auto loss = [&] {
    auto copy = logits;
    ops<double>().cross_entropy({3, 7}, {copy.data(), targets.data(), 0.5, losses.data(), gradient.data()});
    return 0.5 * (losses[0] + losses[1] + losses[2]);
  };
  loss();
  const auto analytic = gradient;
  expect_gradient(logits, analytic, loss);
}

}  // namespace
}  // namespace tprimat::engine
