#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "world.h"

namespace tprimat::engine {
namespace {

// Lengths around every border: empty, below the number of ranks, one message, blocks of one and of many pieces.
const std::vector<int64_t> k_lengths = {0, 1, 3, 7, 1000, 2047, 2049, 4099, 70'001};

// What each element's value is on each rank, without any communication.
template <class T>
T value_of(int rank, int64_t i) {
  const auto bits = static_cast<uint32_t>(i * 2654435761u + static_cast<uint32_t>(rank) * 40503u);
  const double unit = static_cast<double>(bits % 20011u) / 1000.0 - 10.0;
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(unit * 1e6);
  else
    return narrow<T>(static_cast<Accum<T>>(unit * (i % 5 == 0 ? 1e-3 : 1.0)));
}

template <class T>
std::vector<T> values_of(int rank, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = value_of<T>(rank, i);
  return values;
}

// From rank 0 upwards, in the accumulator, rounded once.
template <class T>
T expected_value(int ranks, int64_t i, Reduction reduction) {
  if constexpr (std::is_integral_v<T>) {
    T total = value_of<T>(0, i);
    for (int rank = 1; rank < ranks; ++rank) {
      const T next = value_of<T>(rank, i);
      total = reduction == Reduction::sum ? total + next : std::max(total, next);
    }
    return total;
  } else {
    Accum<T> total = widen(value_of<T>(0, i));
    for (int rank = 1; rank < ranks; ++rank) {
      const Accum<T> next = widen(value_of<T>(rank, i));
      total = reduction == Reduction::sum ? total + next : std::max(total, next);
    }
    return narrow<T>(total);
  }
}

template <class T>
std::vector<T> expected_values(int64_t count, Reduction reduction) {
  std::vector<T> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = expected_value<T>(world().size(), i, reduction);
  return values;
}

// Bits, not values.
template <class T>
void expect_same(const T* got, const std::vector<T>& expected, int64_t count) {
  if (count == 0) return;
  EXPECT_EQ(std::memcmp(got, expected.data(), expected.size() * sizeof(T)), 0) << count << " values";
}

template <class T>
class Collectives : public testing::Test {};
using Types = testing::Types<float, double, bf16, f16, int32_t, int64_t>;
TYPED_TEST_SUITE(Collectives, Types);

TYPED_TEST(Collectives, AllReduceAddsInTheOrderOfTheRanksAndRoundsOnce) {
  for (const int64_t count : k_lengths)
    for (const Reduction reduction : {Reduction::sum, Reduction::max}) {
      auto values = values_of<TypeParam>(world().rank(), count);
      world().all_reduce(values.data(), count, reduction);
      expect_same(values.data(), expected_values<TypeParam>(count, reduction), count);
    }
}

TYPED_TEST(Collectives, ReduceScatterGivesEachRankItsBlockOfTheSum) {
  const int ranks = world().size(), rank = world().rank();
  for (const int64_t count : k_lengths) {
    const auto expected = expected_values<TypeParam>(count * ranks, Reduction::sum);
    const std::vector<TypeParam> block(expected.begin() + rank * count, expected.begin() + (rank + 1) * count);
    auto all = values_of<TypeParam>(rank, count * ranks);
    std::vector<TypeParam> own(static_cast<size_t>(count));
    world().reduce_scatter(all.data(), count, own.data());
    expect_same(own.data(), block, count);

    all = values_of<TypeParam>(rank, count * ranks);  // in place
    world().reduce_scatter(all.data(), count, all.data() + rank * count);
    expect_same(all.data() + rank * count, block, count);
  }
}

TYPED_TEST(Collectives, AllGatherPutsTheBlocksInTheOrderOfTheRanks) {
  const int ranks = world().size(), rank = world().rank();
  for (const int64_t count : k_lengths) {
    std::vector<TypeParam> expected;
    for (int each = 0; each < ranks; ++each) {
      const auto block = values_of<TypeParam>(each, count);
      expected.insert(expected.end(), block.begin(), block.end());
    }
    const auto own = values_of<TypeParam>(rank, count);
    std::vector<TypeParam> all(static_cast<size_t>(count * ranks));
    world().all_gather(own.data(), count, all.data());
    expect_same(all.data(), expected, count * ranks);

    std::fill(all.begin(), all.end(), TypeParam{});  // in place
    std::copy(own.begin(), own.end(), all.begin() + rank * count);
    world().all_gather(all.data() + rank * count, count, all.data());
    expect_same(all.data(), expected, count * ranks);
  }
}

// Block r of rank q's values is what rank r finds in place q.
TYPED_TEST(Collectives, AllToAllTransposesTheBlocks) {
  const int ranks = world().size(), rank = world().rank();
  for (const int64_t count : k_lengths) {
    std::vector<TypeParam> expected;
    for (int each = 0; each < ranks; ++each) {
      const auto theirs = values_of<TypeParam>(each, count * ranks);
      expected.insert(expected.end(), theirs.begin() + rank * count, theirs.begin() + (rank + 1) * count);
    }
    const auto from = values_of<TypeParam>(rank, count * ranks);
    std::vector<TypeParam> to(from.size());
    world().all_to_all(from.data(), count, to.data());
    expect_same(to.data(), expected, count * ranks);
    expect_same(from.data(), values_of<TypeParam>(rank, count * ranks), count * ranks);  // as it was
  }
}

TYPED_TEST(Collectives, BroadcastFromEveryRoot) {
  for (int root = 0; root < world().size(); ++root)
    for (const int64_t count : {int64_t{0}, int64_t{5}, int64_t{70'001}}) {
      auto values = values_of<TypeParam>(world().rank(), count);
      world().broadcast(comm_buffer(values.data(), count), root);
      expect_same(values.data(), values_of<TypeParam>(root, count), count);
    }
}

// The bits that ZeRO needs: cut or not cut, the sum is the same.
TEST(AllReduce, IsReduceScatterThenAllGather) {
  const int64_t count = 33'333;
  const int ranks = world().size(), rank = world().rank();
  auto cut = values_of<float>(rank, count * ranks), whole = cut;
  world().all_reduce(whole.data(), count * ranks);
  world().reduce_scatter(cut.data(), count, cut.data() + rank * count);
  world().all_gather(cut.data() + rank * count, count, cut.data());
  expect_same(cut.data(), whole, count * ranks);
}

TEST(AllReduce, OfManyPieces) {
  const int64_t count = 1'300'003;
  auto values = values_of<bf16>(world().rank(), count);
  world().all_reduce(values.data(), count);
  expect_same(values.data(), expected_values<bf16>(count, Reduction::sum), count);
}

TEST(AllGather, OfBytesThatNobodyUnderstandsTravels) {
  std::vector<std::byte> all(static_cast<size_t>(world().size()));
  const auto own = std::byte(world().rank() + 1);
  world().all_gather(&own, 1, all.data());
  for (int rank = 0; rank < world().size(); ++rank) EXPECT_EQ(all[static_cast<size_t>(rank)], std::byte(rank + 1));
}

// As experts have it: to their ranks and back.
TEST(AllToAll, TwiceGivesEachRankItsOwnAgain) {
  const int64_t count = 5'003;
  const auto group = world().split(world().rank() % 2, -world().rank());
  const auto own = values_of<float>(world().rank(), count * group->size());
  std::vector<float> there(own.size()), back(own.size());
  group->all_to_all(own.data(), count, there.data());
  group->all_to_all(there.data(), count, back.data());
  expect_same(back.data(), own, static_cast<int64_t>(own.size()));
}

TEST(AllReduce, ANanOnOneRankIsSeenByAll) {
  for (int culprit = 0; culprit < world().size(); ++culprit)
    for (const Reduction reduction : {Reduction::sum, Reduction::max}) {
      float value = world().rank() == culprit ? std::numeric_limits<float>::quiet_NaN() : 1.0f;
      world().all_reduce(&value, 1, reduction);
      EXPECT_TRUE(std::isnan(value)) << culprit;
    }
}

TEST(Barrier, NobodyLeavesBeforeTheLastHasCome) {
  for (int last = 0; last < world().size(); ++last) {
    int32_t arrived = 0;
    if (world().rank() == last) arrived = 1;
    world().barrier();
    world().broadcast(comm_buffer(&arrived, 1), last);
    EXPECT_EQ(arrived, 1);
  }
}

}  // namespace
}  // namespace tprimat::engine
