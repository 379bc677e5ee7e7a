#include "compare/series.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tprimat::results {
namespace {

Curve curve(const std::vector<double>& values) { return curve_by_step({}, values); }

// What a log shows that reports every `interval` steps.
Curve every(int64_t interval, Curve of_all) {
  std::erase_if(of_all, [&](const CurvePoint& point) { return point.step % interval != 0; });
  return of_all;
}

Curve cosine(size_t steps, double end, size_t shift = 0) {
  std::vector<double> rates;
  for (size_t i = 0; i < steps; ++i)
    rates.push_back(end + (3e-4 - end) / 2 *
                              (1 + std::cos(M_PI * static_cast<double>(i + shift) / static_cast<double>(steps))));
  return curve(rates);
}

Curve decay(size_t steps, double floor) {
  std::vector<double> losses;
  for (size_t i = 0; i < steps; ++i)
    losses.push_back(floor + 8 * std::exp(-static_cast<double>(i) / 30) +
                     0.02 * std::sin(static_cast<double>(i) * 2.3));
  return curve(losses);
}

TEST(LearningRate, EqualSchedulesAgreeEvenOneStepApart) {
  EXPECT_FALSE(compare_learning_rates(cosine(500, 0), cosine(500, 0)).gap);
  EXPECT_FALSE(compare_learning_rates(cosine(500, 0), cosine(500, 0, 1)).gap);
  Curve one_short = cosine(500, 0);
  one_short.erase(one_short.begin());
  for (CurvePoint& point : one_short) --point.step;
  EXPECT_FALSE(compare_learning_rates(cosine(500, 0), one_short).gap);
}

TEST(LearningRate, OtherEndIsFoundWhereItIsWidest) {
  const auto gap = compare_learning_rates(cosine(500, 0), cosine(500, 3e-5)).gap;
  ASSERT_TRUE(gap);
  EXPECT_GT(gap->step, 450);
  EXPECT_NEAR(gap->subject, 3e-5, 1e-6);
}

TEST(LearningRate, MissingSeriesSayNothing) {
  EXPECT_FALSE(compare_learning_rates({}, cosine(10, 0)).gap);
  EXPECT_FALSE(compare_learning_rates(curve({0, 0, 0}), curve({0, 0, 0})).gap);
}

TEST(LearningRate, LogsOfEveryTenthStepAreCompared) {
  const auto compared = compare_learning_rates(every(10, cosine(500, 0)), every(10, cosine(500, 3e-5)));
  EXPECT_EQ(compared.compared, 50u);
  EXPECT_TRUE(compared.gap);
  EXPECT_FALSE(compare_learning_rates(every(10, cosine(500, 0)), every(10, cosine(500, 0, 1))).gap);
  EXPECT_TRUE(compare_learning_rates(every(10, cosine(500, 0)), cosine(500, 3e-5)).gap);
}

TEST(LearningRate, LogsWithoutACommonStepSayNothing) {
  Curve between = every(10, cosine(500, 3e-5));
  for (CurvePoint& point : between) point.step += 5;
  EXPECT_EQ(compare_learning_rates(every(10, cosine(500, 0)), between).compared, 0u);
}

TEST(LearningRate, AShortLogMayBeOneStepApart) {
  EXPECT_FALSE(compare_learning_rates(curve({1, 2, 3, 4}), curve({2, 3, 4, 5})).gap);
}

TEST(CurveByStep, IsInOrderCountedFromOneAndHoldsTheLastOfARepeatedStep) {
  RunResult run;
  run.step_times.assign(5, 1.0);
  run.steps.emplace();
  run.steps->counts_from = 0;
  run.steps->numbers = {{0, 10, 20, 10, 1'000'000'000}};
  const Curve found = curve_by_step(run, {1, 2, std::nan(""), 4, 5});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].step, 1);
  EXPECT_EQ(found[1].step, 11);
  EXPECT_EQ(found[1].value, 4);
  EXPECT_EQ(found[2].step, 1'000'000'001);
}

TEST(Loss, CurvesThatDifferByNoiseAgree) {
  EXPECT_FALSE(compare_losses({decay(200, 4)}, {decay(200, 4.02)}).gap);
  EXPECT_FALSE(compare_losses({}, {decay(200, 4)}).gap);
}

TEST(Loss, AnotherFloorIsADisagreement) {
  const auto gap = compare_losses({decay(200, 4)}, {decay(200, 4.6)}).gap;
  ASSERT_TRUE(gap);
  EXPECT_EQ(gap->step, 200);
  EXPECT_NEAR(gap->subject - gap->reference, 0.6, 0.05);
}

TEST(Loss, LogsOfEveryFiftiethStepAreCompared) {
  Curve dense = decay(990, 10), same = decay(990, 4);
  const Curve sparse = every(50, decay(1000, 4));
  const auto compared = compare_losses({sparse}, {dense});
  EXPECT_EQ(compared.compared, 4u);
  ASSERT_TRUE(compared.gap);
  EXPECT_EQ(compared.gap->step, 950);
  EXPECT_FALSE(compare_losses({sparse}, {same}).gap);
  EXPECT_TRUE(compare_losses({dense}, {sparse}).gap);
  for (CurvePoint& point : dense) point.step += 7;
  EXPECT_TRUE(compare_losses({sparse}, {dense}).gap) << "each between the other's steps";
}

TEST(Loss, WhereALogPausesNothingIsCompared) {
  Curve paused = decay(1000, 4);
  std::erase_if(paused, [](const CurvePoint& point) { return point.step > 20 && point.step < 900; });
  const auto compared = compare_losses({every(50, decay(1000, 4))}, {paused});
  EXPECT_EQ(compared.compared, 1u);
  EXPECT_FALSE(compared.gap);
  EXPECT_EQ(compare_losses({every(50, decay(1000, 4))}, {every(300, decay(1000, 4))}).compared, 0u);
}

TEST(Loss, RepeatedRunsTeachTheBand) {
  const Curves narrow(3, decay(200, 4)), apart(3, decay(200, 4.12));
  EXPECT_FALSE(compare_losses({narrow[0]}, {apart[0]}).gap);  // 3 %: within the 5 % of a single run
  const auto gap = compare_losses(narrow, apart).gap;
  ASSERT_TRUE(gap);
  EXPECT_LT(gap->allowed, 0.12);
  const Curves wide{decay(200, 3.5), decay(200, 4.1), decay(200, 4.7)};
  EXPECT_FALSE(compare_losses(narrow, wide).gap);
}

TEST(Loss, AStatedToleranceDecides) {
  EXPECT_TRUE(compare_losses({decay(200, 4)}, {decay(200, 4.12)}, 0.01).gap);
  EXPECT_FALSE(compare_losses({decay(200, 4)}, {decay(200, 4.6)}, 0.3).gap);
}

TEST(Loss, DivergenceIsARiseToTheEnd) {
  Curve losses = decay(200, 4);
  EXPECT_FALSE(find_loss_divergence(losses));
  for (size_t i = 150; i < 200; ++i) losses[i].value += 0.1 * static_cast<double>(i - 150);
  const auto rise = find_loss_divergence(losses);
  ASSERT_TRUE(rise);
  EXPECT_NEAR(static_cast<double>(rise->step), 150, 40);
  EXPECT_GT(rise->subject, 7);
  EXPECT_FALSE(find_loss_divergence({}));
}

TEST(Loss, MissingValuesAreLeftOut) {
  Curve holed = decay(200, 4);
  std::erase_if(holed, [](const CurvePoint& point) { return point.step % 3 == 1; });
  EXPECT_FALSE(compare_losses({decay(200, 4)}, {holed}).gap);
}

TEST(Loss, CollapseNeedsAnHonestStart) {
  EXPECT_NEAR(*find_loss_collapse(decay(400, 0.02)), 0.02, 0.02);
  EXPECT_FALSE(find_loss_collapse(decay(400, 1.5)));
  EXPECT_FALSE(find_loss_collapse(curve(std::vector<double>(50, 0.01))));
  EXPECT_FALSE(find_loss_collapse({}));
}

TEST(Loss, GuessingIsToldFromLearning) {
  EXPECT_NEAR(*find_loss_of_guessing(curve(std::vector<double>(50, 10.38)), 32000), 10.38, 1e-9);  // ln 32000 = 10.373
  EXPECT_FALSE(find_loss_of_guessing(curve(std::vector<double>(49, 10.38)), 32000));
  EXPECT_FALSE(find_loss_of_guessing(curve(std::vector<double>(50, 10.3)), 32000));
  EXPECT_FALSE(find_loss_of_guessing(curve(std::vector<double>(50, 10.38)), 0));
  EXPECT_FALSE(find_loss_of_guessing(decay(400, 4), 32000));
}

}  // namespace
}  // namespace tprimat::results
