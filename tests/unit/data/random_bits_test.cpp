#include "data/random_bits.h"

#include <gtest/gtest.h>

#include <vector>

namespace tprimat {
namespace {

TEST(ScrambleBits, MatchesThePublishedSequence) {
  EXPECT_EQ(scramble_bits(0), 0xe220a8397b1dcdaf);  // first output of SplitMix64 with seed 0
}

TEST(RandomStream, StaysBelowItsLimitAndReachesAll) {
  RandomStream random(1, 2);
  std::vector<int> hits(10);
  for (int i = 0; i < 10000; ++i) {
    const uint64_t value = random.next_below(10);
    ASSERT_LT(value, 10u);
    ++hits[value];
  }
  for (const int count : hits) EXPECT_NEAR(count, 1000, 150);
}

TEST(Permutation, VisitsEveryIndexOnce) {
  for (const int64_t count : {1, 2, 3, 4, 5, 16, 17, 1000, 4096, 4097}) {
    const Permutation order(count, 42);
    std::vector<bool> seen(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = order(i);
      ASSERT_TRUE(at >= 0 && at < count) << count;
      ASSERT_FALSE(seen[static_cast<size_t>(at)]) << count;
      seen[static_cast<size_t>(at)] = true;
    }
  }
}

TEST(Permutation, ShufflesAndDependsOnTheSeed) {
  const Permutation first(1000, 1), second(1000, 2);
  int in_place = 0, agreeing = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    in_place += first(i) == i;
    agreeing += first(i) == second(i);
  }
  EXPECT_LT(in_place, 10);
  EXPECT_LT(agreeing, 10);
}

}  // namespace
}  // namespace tprimat
