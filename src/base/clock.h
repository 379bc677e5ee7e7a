#pragma once

#include <chrono>
#include <string>

namespace tprimat {

// Monotonic; for durations.
using SteadyClock = std::chrono::steady_clock;
double seconds_since(SteadyClock::time_point start);

// Wall clock, seconds since 1970-01-01 UTC; for joining records of different sources.
double unix_time_seconds();

// "2026-11-20T22:43:53Z"
std::string utc_timestamp();
std::string format_utc(double unix_seconds);  // empty for a moment that has no calendar year of four digits

}  // namespace tprimat
