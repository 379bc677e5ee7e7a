#include "base/clock.h"

#include <gtest/gtest.h>

#include <string>

namespace tprimat {
namespace {

TEST(Clock, TimestampIsUtcInSeconds) {
  std::string shape = utc_timestamp();
  for (char& c : shape)
    if (c >= '0' && c <= '9') c = '0';
  EXPECT_EQ(shape, "0000-00-00T00:00:00Z");
}

TEST(Clock, DurationsDoNotRunBackwards) {
  const auto start = SteadyClock::now();
  const double first = seconds_since(start);
  EXPECT_GE(first, 0);
  EXPECT_GE(seconds_since(start), first);
}

TEST(Clock, WallClockIsAfter2020) { EXPECT_GT(unix_time_seconds(), 1.577e9); }

}  // namespace
}  // namespace tprimat
