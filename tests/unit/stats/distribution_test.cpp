#include "stats/distribution.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tprimat {
namespace {

TEST(Distribution, QuantilesMatchTables) {
  EXPECT_NEAR(normal_quantile(0.975), 1.959963985, 1e-8);
  EXPECT_NEAR(student_t_quantile(0.975, 1), 12.70620474, 1e-7);
  EXPECT_NEAR(student_t_quantile(0.975, 2), 4.30265273, 1e-7);
  EXPECT_NEAR(student_t_quantile(0.975, 3), 3.18244631, 1e-7);
  EXPECT_NEAR(student_t_quantile(0.025, 9), -2.26215716, 1e-7);
  EXPECT_NEAR(student_t_quantile(0.995, 4), 4.60409487, 1e-7);
  EXPECT_NEAR(student_t_quantile(0.975, 100), 1.98397152, 1e-7);
  EXPECT_NEAR(student_t_quantile(0.975, 1e9), 1.959963985, 1e-7);
  EXPECT_EQ(student_t_quantile(0.5, 3), 0);
}

TEST(Distribution, QuantileInvertsTheTail) {
  for (const double degrees : {1.0, 1.3, 1.99, 2.5, 3.0, 7.7, 40.0, 12345.6})
    for (const double tail : {1e-8, 1e-4, 0.025, 0.3, 0.499}) {
      const double t = student_t_quantile(1 - tail, degrees);
      EXPECT_NEAR(student_t_tail(t, degrees) / tail, 1, 1e-6) << degrees << " " << tail;
      EXPECT_NEAR(student_t_quantile(tail, degrees), -t, 1e-6 * t);
    }
}

TEST(Distribution, TailIsKnownInClosedForm) {
  EXPECT_NEAR(student_t_tail(1, 1), 0.25, 1e-12);                      // Cauchy: 1/2 - atan(t)/pi
  EXPECT_NEAR(student_t_tail(2, 2), 0.5 - 1 / std::sqrt(6.0), 1e-12);  // 1/2 - t / (2·sqrt(2 + t²))
  EXPECT_NEAR(student_t_tail(-2, 2), 0.5 + 1 / std::sqrt(6.0), 1e-12);
  EXPECT_NEAR(student_t_tail(0, 5), 0.5, 1e-12);
  EXPECT_EQ(student_t_tail(HUGE_VAL, 5), 0);
}

}  // namespace
}  // namespace tprimat
