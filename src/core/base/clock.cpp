#include "base/clock.h"

#include <fmt/chrono.h>

#include <cstdio>
#include <ctime>

namespace tprimat {
namespace {

// Seconds east of UTC of "Z", "+02:00", "-0530"; 0 where there is none.
double zone_offset(const char* text) {
  int hours = 0, minutes = 0;
  char sign = 0;
  while (*text == '.' || (*text >= '0' && *text <= '9')) ++text;  // fraction of a second
  if (std::sscanf(text, "%c%2d:%2d", &sign, &hours, &minutes) < 3 &&
      std::sscanf(text, "%c%2d%2d", &sign, &hours, &minutes) < 2)
    return 0;
  const double seconds = hours * 3600.0 + minutes * 60.0;
  return sign == '+' ? seconds : sign == '-' ? -seconds : 0;
}

}  // namespace

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

double unix_time_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string utc_timestamp() { return format_utc(unix_time_seconds()); }

bool has_calendar_year(double unix_seconds) {
  constexpr double k_year_0 = -62167219200.0, k_year_10000 = 253402300800.0;
  return unix_seconds >= k_year_0 && unix_seconds < k_year_10000;
}

std::string format_utc(double unix_seconds) {
  if (!has_calendar_year(unix_seconds)) return "";
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_seconds)));
}

std::optional<double> parse_timestamp(const std::string& text) {
  std::tm moment{};
  int used = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2d%n", &moment.tm_year, &moment.tm_mon, &moment.tm_mday, &used) < 3)
    return std::nullopt;
  const char* clock = text.c_str() + used;
  int clock_used = 0;
  if (*clock == 'T' || *clock == ' ')
    if (std::sscanf(clock + 1, "%2d:%2d:%2d%n", &moment.tm_hour, &moment.tm_min, &moment.tm_sec, &clock_used) < 3)
      return std::nullopt;
  if (moment.tm_year < 1970 || moment.tm_mon < 1 || moment.tm_mon > 12 || moment.tm_mday < 1 || moment.tm_mday > 31)
    return std::nullopt;
  moment.tm_year -= 1900, moment.tm_mon -= 1;
  return static_cast<double>(::timegm(&moment)) - (clock_used > 0 ? zone_offset(clock + 1 + clock_used) : 0);
}

}  // namespace tprimat
