#include "ops/op_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace tprimat::engine {
namespace {

TEST(NormalDraw, LogarithmAndCosineAreThoseOfTheLibrary) {
  EXPECT_EQ(natural_logarithm(1.0), 0.0);
  EXPECT_NEAR(natural_logarithm(0x1.0p-53), std::log(0x1.0p-53), 1e-14);
  for (uint64_t i = 0; i < 100'000; ++i) {
    const double u = random_unit(7, i), turn = 2.0 * std::numbers::pi * u;
    ASSERT_GT(u, 0.0);
    ASSERT_LE(u, 1.0);
    ASSERT_NEAR(natural_logarithm(u) / std::log(u), 1.0, 1e-15) << i;
    ASSERT_NEAR(cosine_of_turn(u), std::cos(turn), 1e-15) << i;
  }
  const double quarters[] = {1.0, 0.0, -1.0, 0.0, 1.0};
  for (int quarter = 0; quarter <= 4; ++quarter) EXPECT_EQ(cosine_of_turn(quarter / 4.0), quarters[quarter]);
}

// The values that trainings have started from since the first release, whatever machine and compiler.
TEST(NormalDraw, BitsAreTheSameOnEveryMachine) {
  std::vector<double> values(4);
  cpu_ops<double>().draw_normal(4, {0.0, 1.0, 42}, values.data());
  EXPECT_EQ(values, (std::vector<double>{-0x1.b0ea416e57ef7p-4, 0x1.83c1ed3e3fc36p-3, -0x1.93c48f4b78cf6p-1,
                                         0x1.1b58833817532p+1}));
}

TEST(NormalDraw, ABlockIsReadRowByRow) {
  std::vector<double> whole(60), block(5);
  cpu_ops<double>().draw_normal(60, {0.5, 2.0, 3}, whole.data());
  cpu_ops<double>().draw_normal(
      5, {.mean = 0.5, .stddev = 2.0, .stream = 3, .first = 12, .cols = 2, .whole_cols = 6, .skip = 1}, block.data());
  EXPECT_EQ(block, (std::vector<double>{whole[13], whole[18], whole[19], whole[24], whole[25]}));
}

}  // namespace
}  // namespace tprimat::engine
