#include "history/entry.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cmath>
#include <cstdio>
#include <ctime>

#include "compare/copies.h"
#include "result/metrics.h"
#include "result/summary.h"

namespace tprimat {
namespace {

template <class T>
std::string name_of(const std::optional<T>& value) {
  return value ? std::string(enum_name(*value)) : "";
}

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

std::string hash_measurement(const RunResult& result) {
  const std::string key = measurement_key(result);
  if (key.empty()) return "";
  const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

std::string describe_series(const SeriesKey& key) {
  std::string text = key.model.empty() ? "unknown model" : key.model;
  const auto add = [&](const std::string& word) { text += word.empty() ? "" : ", " + word; };
  const auto platform = parse_enum<Platform>(key.platform);
  const auto framework = parse_enum<Framework>(key.framework);
  add(platform ? std::string(display_name(*platform)) : "unknown platform");
  if (framework) text += " " + std::string(display_name(*framework));
  add(key.device_count > 1 ? fmt::format("{} x {}", key.device_count, key.device) : key.device);
  add(key.precision);
  if (key.global_batch_size > 0) add(fmt::format("GBS {}", key.global_batch_size));
  if (key.sequence_length > 0) add(fmt::format("SL {}", key.sequence_length));
  add(key.strategy);
  return text;
}

HistoryEntry make_entry(const RunResult& result) {
  HistoryEntry entry;
  entry.series = {.model = result.model_info.name,
                  .framework = name_of(result.framework),
                  .platform = name_of(result.platform),
                  .device = result.gpu_info.device_name,
                  .precision = name_of(result.precision),
                  .strategy = result.parallelism_config.strategy_name.value_or(""),
                  .device_count = device_count(result).value_or(0),
                  .global_batch_size = result.training_config.global_batch_size.value_or(0),
                  .sequence_length = result.training_config.sequence_length.value_or(0)};
  entry.timestamp = result.timestamp;
  entry.status = result.status;
  entry.measurement = hash_measurement(result);
  for (const Metric& metric : metrics())
    if (const auto figure = metric.read(result); figure && std::isfinite(figure->value))
      entry.figures[std::string(metric.key)] = *figure;
  return entry;
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
