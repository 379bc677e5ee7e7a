#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace tprimat {

// Monotonic; for durations.
using SteadyClock = std::chrono::steady_clock;
double seconds_since(SteadyClock::time_point start);

// Wall clock, seconds since 1970-01-01 UTC; for joining records of different sources.
double unix_time_seconds();

// "2026-11-20T22:43:53Z"
std::string utc_timestamp();
bool has_calendar_year(double unix_seconds);  // of four digits
std::string format_utc(double unix_seconds);  // empty for a moment that has no calendar year of four digits

// Seconds since 1970 of "2026-01-31T12:00:00Z", with or without fraction, zone or time of day; nothing for anything
// else. Without a zone it is read as UTC.
std::optional<double> parse_timestamp(const std::string& text);

}  // namespace tprimat
