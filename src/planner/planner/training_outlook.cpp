#include "planner/training_outlook.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "base/check.h"
#include "spec/flop_breakdown.h"
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

constexpr double k_seconds_per_hour = 3600;
constexpr double k_hours_per_day = 24;

double nodes_of(int64_t gpus) { return std::max(1.0, static_cast<double>(gpus) / k_gpus_per_node); }

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

double checkpoint_bytes(const ModelSpec& shape) {
  constexpr double k_bytes_per_parameter = 2 + 4 + 4 + 4;
  return k_bytes_per_parameter * static_cast<double>(break_down(shape, {1, true, 0}).parameters());
}

Straggling estimate_straggling(int64_t gpus, double per_doubling, std::optional<double> node_noise) {
  Straggling straggling;
  straggling.nodes = nodes_of(gpus);
  straggling.expected_maximum = expected_maximum(straggling.nodes);
  straggling.share =
      node_noise ? *node_noise * straggling.expected_maximum : per_doubling * std::log2(straggling.nodes);
  straggling.node_noise =
      node_noise.value_or(straggling.expected_maximum > 0 ? straggling.share / straggling.expected_maximum : 0);
  return straggling;
}

void apply_node_noise(SearchOutcome& outcome, int64_t gpus, double per_doubling, double node_noise) {
  const double calibrated = estimate_straggling(gpus, per_doubling, {}).share;
  const double noisy = estimate_straggling(gpus, per_doubling, node_noise).share;
  const double factor = (1 + noisy) / (1 + calibrated);
  for (RankedLayout& plan : outcome.ranked) plan.time.scale(factor);
  for (RankedLayout& plan : outcome.frontier) plan.time.scale(factor);
}

TrainingOutlook foresee_training(const RankedLayout& plan, const TrainingTerms& terms, const Straggling& straggling) {
  const int64_t gpus = plan.workload.layout.num_gpus();
  TrainingOutlook outlook;
  outlook.tokens = terms.tokens;
  outlook.tokens_per_second = plan.time.tokens_per_second_per_gpu(plan.workload) * static_cast<double>(gpus);
  outlook.goodput = estimate_goodput(terms.reliability, gpus, checkpoint_bytes(plan.workload.shape), plan.time.total());
  outlook.straggling = straggling;
  outlook.usd_per_gpu_hour = terms.usd_per_gpu_hour, outlook.tdp_watts = terms.tdp_watts;
  if (outlook.goodput.is_hopeless()) return outlook;
  const double hours = terms.tokens / (outlook.tokens_per_second * outlook.goodput.share) / k_seconds_per_hour;
  const double gpu_hours = hours * static_cast<double>(gpus);
  outlook.days = hours / k_hours_per_day;
  if (terms.usd_per_gpu_hour) outlook.usd = *terms.usd_per_gpu_hour * gpu_hours;
  if (terms.tdp_watts) outlook.megawatt_hours = *terms.tdp_watts * gpu_hours / 1e6;
  return outlook;
}

}  // namespace tprimat::planner
