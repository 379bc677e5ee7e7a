#include "history/entry.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cmath>

#include "compare/audit.h"
#include "compare/copies.h"
#include "compare/stated_facts.h"
#include "result/metrics.h"
#include "result/summary.h"

namespace tprimat::results {
namespace {

template <class T>
std::string name_of(const std::optional<T>& value) {
  return value ? std::string(enum_name(*value)) : "";
}

std::string hash_of(const std::string& key) {
  if (key.empty()) return "";
  const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

// The status stands beside it, and a missing rate is a missing figure.
std::string find_fault(const RunResult& result) {
  for (const Finding& finding : audit_contender({"", "", {{"", result}}, {}}))
    if (finding.severity == Severity::error && finding.code != "status" && finding.code != "rate_missing" &&
        finding.code != "model_missing")
      return finding.sentence;
  return "";
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
  entry.measurement = hash_of(measurement_key(result));
  entry.work = hash_of(state_work(result));
  entry.dataset = result.dataset.value_or("");
  entry.fault = find_fault(result);
  for (const Metric& metric : metrics())
    if (const auto figure = metric.read(result); figure && std::isfinite(figure->value))
      entry.figures[std::string(metric.key)] = *figure;
  return entry;
}

}  // namespace tprimat::results
