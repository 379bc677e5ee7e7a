#include "data/synthetic_corpus.h"

#include <gtest/gtest.h>

#include <vector>

namespace tprimat::engine {
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

}  // namespace
}  // namespace tprimat::engine
