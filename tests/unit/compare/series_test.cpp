#include "compare/series.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tprimat {
namespace {

std::vector<double> cosine(size_t steps, double end, size_t shift = 0) {
  std::vector<double> rates;
  for (size_t i = 0; i < steps; ++i)
    rates.push_back(end + (3e-4 - end) / 2 *
                              (1 + std::cos(M_PI * static_cast<double>(i + shift) / static_cast<double>(steps))));
  return rates;
}

std::vector<double> decay(size_t steps, double floor) {
  std::vector<double> losses;
  for (size_t i = 0; i < steps; ++i)
    losses.push_back(floor + 8 * std::exp(-static_cast<double>(i) / 30) +
                     0.02 * std::sin(static_cast<double>(i) * 2.3));
  return losses;
}

TEST(LearningRate, EqualSchedulesAgreeEvenOneStepApart) {
  EXPECT_FALSE(find_learning_rate_gap(cosine(500, 0), cosine(500, 0)));
  EXPECT_FALSE(find_learning_rate_gap(cosine(500, 0), cosine(500, 0, 1)));
  std::vector<double> one_short = cosine(500, 0);
  one_short.erase(one_short.begin());
  EXPECT_FALSE(find_learning_rate_gap(cosine(500, 0), one_short));
}

TEST(LearningRate, OtherEndIsFoundWhereItIsWidest) {
  const auto gap = find_learning_rate_gap(cosine(500, 0), cosine(500, 3e-5));
  ASSERT_TRUE(gap);
  EXPECT_GT(gap->step, 450u);
  EXPECT_NEAR(gap->subject, 3e-5, 1e-6);
}

TEST(LearningRate, MissingSeriesSayNothing) {
  EXPECT_FALSE(find_learning_rate_gap({}, cosine(10, 0)));
  EXPECT_FALSE(find_learning_rate_gap({0, 0, 0}, {0, 0, 0}));
}

TEST(Loss, CurvesThatDifferByNoiseAgree) {
  EXPECT_FALSE(find_loss_gap({decay(200, 4)}, {decay(200, 4.02)}));
  EXPECT_FALSE(find_loss_gap({}, {decay(200, 4)}));
}

TEST(Loss, AnotherFloorIsADisagreement) {
  const auto gap = find_loss_gap({decay(200, 4)}, {decay(200, 4.6)});
  ASSERT_TRUE(gap);
  EXPECT_EQ(gap->step, 200u);
  EXPECT_NEAR(gap->subject - gap->reference, 0.6, 0.05);
}

TEST(Loss, RepeatedRunsTeachTheBand) {
  const Curves narrow(3, decay(200, 4)), apart(3, decay(200, 4.12));
  EXPECT_FALSE(find_loss_gap({narrow[0]}, {apart[0]}));  // 3 %: within the 5 % of a single run
  const auto gap = find_loss_gap(narrow, apart);
  ASSERT_TRUE(gap);
  EXPECT_LT(gap->allowed, 0.12);
  const Curves wide{decay(200, 3.5), decay(200, 4.1), decay(200, 4.7)};
  EXPECT_FALSE(find_loss_gap(narrow, wide));
}

TEST(Loss, AStatedToleranceDecides) {
  EXPECT_TRUE(find_loss_gap({decay(200, 4)}, {decay(200, 4.12)}, 0.01));
  EXPECT_FALSE(find_loss_gap({decay(200, 4)}, {decay(200, 4.6)}, 0.3));
}

TEST(Loss, DivergenceIsARiseToTheEnd) {
  std::vector<double> losses = decay(200, 4);
  EXPECT_FALSE(find_loss_divergence(losses));
  for (size_t i = 150; i < 200; ++i) losses[i] += 0.1 * static_cast<double>(i - 150);
  const auto rise = find_loss_divergence(losses);
  ASSERT_TRUE(rise);
  EXPECT_NEAR(static_cast<double>(rise->step), 150, 40);
  EXPECT_GT(rise->subject, 7);
  EXPECT_FALSE(find_loss_divergence({}));
}

TEST(Loss, MissingValuesAreLeftOut) {
  std::vector<double> holed = decay(200, 4);
  for (size_t i = 0; i < 200; i += 3) holed[i] = std::nan("");
  EXPECT_FALSE(find_loss_gap({decay(200, 4)}, {holed}));
}

TEST(Loss, CollapseNeedsAnHonestStart) {
  EXPECT_NEAR(*find_loss_collapse(decay(400, 0.02)), 0.02, 0.02);
  EXPECT_FALSE(find_loss_collapse(decay(400, 1.5)));
  EXPECT_FALSE(find_loss_collapse(std::vector<double>(50, 0.01)));
  EXPECT_FALSE(find_loss_collapse({}));
}

}  // namespace
}  // namespace tprimat
