#include "stats/descriptive.h"

#include <gtest/gtest.h>

namespace tprimat {
namespace {

TEST(RankCorrelation, EqualValuesShareTheirPlaces) {
  EXPECT_EQ(ranks_of(std::vector<double>{3, 1, 3, 2}), (std::vector<double>{3.5, 1, 3.5, 2}));
}

TEST(RankCorrelation, IsOneForTheSameOrderAndMinusOneForItsReverse) {
  const std::vector<double> up = {1, 2, 3, 10}, steep = {1, 4, 9, 1000}, down = {4, 3, 2, 1};
  EXPECT_DOUBLE_EQ(spearman(up, steep), 1);
  EXPECT_DOUBLE_EQ(spearman(up, down), -1);
}

// One neighbouring pair of five changed places: 1 - 6 * 2 / (5 * 24).
TEST(RankCorrelation, CountsChangedPlaces) {
  EXPECT_NEAR(spearman(std::vector<double>{1, 2, 3, 4, 5}, std::vector<double>{1, 3, 2, 4, 5}), 0.9, 1e-12);
}

TEST(RankCorrelation, SaysNothingOfEqualValues) {
  EXPECT_EQ(spearman(std::vector<double>{1, 1, 1}, std::vector<double>{1, 2, 3}), 0);
}

}  // namespace
}  // namespace tprimat
