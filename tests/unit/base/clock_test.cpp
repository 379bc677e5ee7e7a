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

TEST(Timestamps, AreReadInAllTheirForms) {
  EXPECT_EQ(parse_timestamp("2026-01-01T00:00:00Z"), 1767225600);
  EXPECT_EQ(parse_timestamp("2026-01-01T01:00:00+01:00"), 1767225600);
  EXPECT_EQ(parse_timestamp("2025-12-31 19:00:00.250-0500"), 1767225600);
  EXPECT_EQ(parse_timestamp("2026-01-01T00:00:00.123456"), 1767225600);
  EXPECT_EQ(parse_timestamp("2026-01-01"), 1767225600);
  for (const char* text : {"", "yesterday", "2026-13-01", "2026-01-01T", "1767225600"})
    EXPECT_FALSE(parse_timestamp(text)) << text;
}

}  // namespace
}  // namespace tprimat
