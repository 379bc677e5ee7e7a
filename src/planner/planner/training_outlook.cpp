#include "planner/training_outlook.h"

#include <algorithm>
#include <cmath>

#include "spec/flop_breakdown.h"

namespace tprimat::planner {
namespace {

constexpr double k_seconds_per_hour = 3600;
constexpr double k_hours_per_day = 24;

double nodes_of(int64_t gpus) { return std::max(1.0, static_cast<double>(gpus) / k_gpus_per_node); }

}  // namespace

double checkpoint_bytes(const CountedModel& shape) {
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
