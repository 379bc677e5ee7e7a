#include "stats/descriptive.h"

#include <gtest/gtest.h>

#include <array>

namespace tprimat {
namespace {

TEST(Descriptive, MedianOfEvenAndOddCounts) {
  EXPECT_DOUBLE_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(median(std::vector<double>{7}), 7);
}

// numpy.quantile([1, 2, 4, 8, 16], p)
TEST(Descriptive, QuantileIsTypeSeven) {
  const std::vector<double> values{16, 1, 8, 2, 4};
  EXPECT_DOUBLE_EQ(quantile(values, 0.0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 0.05), 1.2);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 2);
  EXPECT_DOUBLE_EQ(quantile(values, 0.95), 14.4);
  EXPECT_DOUBLE_EQ(quantile(values, 1.0), 16);
  EXPECT_EQ(quantiles(values, std::array{0.0, 0.05, 0.25, 0.25, 0.95, 1.0}),
            (std::vector<double>{1, quantile(values, 0.05), 2, 2, quantile(values, 0.95), 16}));
}

TEST(Descriptive, StddevHasDivisorNMinusOne) {
  EXPECT_NEAR(stddev(std::vector<double>{2, 4, 4, 4, 5, 5, 7, 9}), 2.138089935, 1e-9);
  EXPECT_EQ(stddev(std::vector<double>{5}), 0);
}

TEST(Descriptive, GeometricMeanOfReciprocalsIsOne) {}

TEST(Descriptive, OutliersAreFarFromTheMedianInRobustUnits) {
  std::vector<double> values{1.00, 1.01, 0.99, 1.02, 0.98, 1.00, 1.01, 0.99};
  EXPECT_TRUE(find_outliers(values).empty());
  values[3] = 1.5;
  values[6] = 0.5;
  EXPECT_EQ(find_outliers(values), (std::vector<size_t>{3, 6}));
}

TEST(Descriptive, ConstantSeriesDoesNotTurnTheLastDigitIntoAnOutlier) {
  std::vector<double> values(20, 1.0);
  values[4] = 1.001;
  EXPECT_TRUE(find_outliers(values).empty());
  values[4] = 1.1;
  EXPECT_EQ(find_outliers(values), (std::vector<size_t>{4}));
  EXPECT_TRUE(find_outliers({}).empty());
}

}  // namespace
}  // namespace tprimat
