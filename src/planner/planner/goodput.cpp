#include "planner/goodput.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "base/check.h"
#include "spec/tsv_rows.h"
#include "stats/distribution.h"

namespace tprimat::planner {
namespace embedded {
extern const std::string_view reliability_tsv;
}

namespace {

Reliability read_reliability() {
  std::map<std::string, double> figures;
  for (const TsvRow& row : parse_tsv_rows(embedded::reliability_tsv))
    figures[row.at("key")] = parse_figure(row.at("value"));
  const double gpus = figures.at("observed_gpus");
  Reliability reliability;
  reliability.failure_gpu_hours = gpus * figures.at("observed_days") * 24 / figures.at("observed_failures");
  reliability.restart_seconds = figures.at("restart_minutes") * 60;
  reliability.storage_bandwidth_per_gpu = figures.at("storage_gb_per_second") * 1e9 / gpus;
  return reliability;
}

}  // namespace

const Reliability& published_reliability() {
  static const Reliability read = read_reliability();
  return read;
}

double young_interval(double checkpoint, double failure) { return std::sqrt(2 * checkpoint * failure); }

double daly_interval(double checkpoint, double failure) {
  if (checkpoint >= 2 * failure) return failure;
  const double ratio = checkpoint / (2 * failure);
  return young_interval(checkpoint, failure) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - checkpoint;
}

double daly_share(double interval, double checkpoint, double restart, double failure) {
  CHECK(interval > 0 && failure > 0);
  return interval / (failure * std::exp(restart / failure) * std::expm1((interval + checkpoint) / failure));
}

double expected_maximum(double count) {
  if (count <= 1) return 0;
  return normal_quantile((count - 0.375) / (count + 0.25));
}

Goodput estimate_goodput(const Reliability& reliability, int64_t gpus, double checkpoint_bytes, double step_seconds) {
  CHECK(gpus > 0 && checkpoint_bytes > 0);
  const auto count = static_cast<double>(gpus);
  Goodput goodput;
  goodput.failure_seconds = reliability.failure_gpu_hours * 3600 / count;
  goodput.checkpoint_seconds =
      checkpoint_bytes / reliability.storage_bandwidth.value_or(reliability.storage_bandwidth_per_gpu * count);
  goodput.interval_seconds = std::max(step_seconds, daly_interval(goodput.checkpoint_seconds, goodput.failure_seconds));
  goodput.young_interval_seconds = young_interval(goodput.checkpoint_seconds, goodput.failure_seconds);
  goodput.restart_seconds = reliability.restart_seconds;
  goodput.failure_gpu_hours = reliability.failure_gpu_hours;
  goodput.share = daly_share(goodput.interval_seconds, goodput.checkpoint_seconds,
                             reliability.restart_seconds + goodput.checkpoint_seconds, goodput.failure_seconds);
  return goodput;
}

}  // namespace tprimat::planner
