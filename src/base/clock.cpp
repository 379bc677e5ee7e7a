#include "base/clock.h"

#include <fmt/chrono.h>

namespace tprimat {

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

double unix_time_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string utc_timestamp() { return format_utc(unix_time_seconds()); }

std::string format_utc(double unix_seconds) {
  constexpr double k_year_0 = -62167219200.0, k_year_10000 = 253402300800.0;
  if (!(unix_seconds >= k_year_0 && unix_seconds < k_year_10000)) return "";
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_seconds)));
}

}  // namespace tprimat
