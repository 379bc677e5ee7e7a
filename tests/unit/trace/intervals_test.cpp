#include "trace/intervals.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

namespace tprimat::logs {
namespace {

TEST(Intervals, UniteJoinsWhatTouchesAndDropsWhatIsEmpty) {
  EXPECT_EQ(unite({{5, 7}, {1, 2}, {2, 3}, {6, 9}, {20, 20}, {31, 30}}), (IntervalSet{{1, 3}, {5, 9}}));
  EXPECT_TRUE(unite(std::vector<Span>{}).empty());
}

TEST(Intervals, SubtractCutsHolesAndEdges) {
  EXPECT_EQ(subtract({{0, 10}, {20, 30}}, {{2, 3}, {5, 22}, {29, 40}}), (IntervalSet{{0, 2}, {3, 5}, {22, 29}}));
  EXPECT_EQ(subtract({{0, 10}, {12, 14}, {16, 18}}, {{-5, 17}}), (IntervalSet{{17, 18}}));
  EXPECT_TRUE(subtract({{3, 4}}, {{3, 4}}).empty());
}

TEST(Intervals, ClipKeepsWhatLiesInside) {
  EXPECT_EQ(clip({{0, 10}, {20, 30}, {40, 50}}, {5, 45}), (IntervalSet{{5, 10}, {20, 30}, {40, 45}}));
  EXPECT_TRUE(clip({{0, 10}}, {10, 20}).empty());
}

// The reference: every moment of a short time as one bit.
using Moments = std::bitset<128>;

Moments moments_of(const std::vector<Span>& spans) {
  Moments moments;
  for (const Span& span : spans)
    for (int64_t at = span.begin; at < span.end; ++at) moments.set(static_cast<size_t>(at));
  return moments;
}

bool is_canonical(const IntervalSet& set) {
  for (size_t i = 0; i < set.size(); ++i)
    if (set[i].begin >= set[i].end || (i > 0 && set[i].begin <= set[i - 1].end)) return false;
  return true;
}

class IntervalProperties : public testing::TestWithParam<int> {};

TEST_P(IntervalProperties, AgreeWithTheBitmap) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const auto draw = [&](int64_t from, int64_t to) { return std::uniform_int_distribution<int64_t>(from, to)(random); };
  const auto draw_spans = [&] {
    std::vector<Span> spans;
    for (int64_t i = draw(0, 12); i > 0; --i) {
      const int64_t begin = draw(0, 120);
      spans.push_back({begin, begin + draw(0, std::min<int64_t>(127 - begin, GetParam() % 2 == 0 ? 6 : 40))});
    }
    return spans;
  };
  for (int round = 0; round < 500; ++round) {
    const auto a = draw_spans(), b = draw_spans();
    const IntervalSet set_a = unite(a), set_b = unite(b);
    const Span window{draw(0, 60), draw(60, 127)};
    ASSERT_TRUE(is_canonical(set_a));
    EXPECT_EQ(measure(set_a), static_cast<int64_t>(moments_of(a).count()));
    EXPECT_EQ(moments_of(unite(set_a, set_b)), moments_of(a) | moments_of(b));
    const IntervalSet rest = subtract(set_a, set_b);
    ASSERT_TRUE(is_canonical(rest));
    EXPECT_EQ(moments_of(rest), moments_of(a) & ~moments_of(b));
    EXPECT_EQ(moments_of(clip(set_a, window)), moments_of(a) & moments_of({window}));
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, IntervalProperties, testing::Range(1, 9));

}  // namespace
}  // namespace tprimat::logs
