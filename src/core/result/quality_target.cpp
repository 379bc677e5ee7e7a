#include "result/quality_target.h"

#include <algorithm>
#include <cmath>

namespace tprimat {
namespace {

// As the compliance checker of github.com/mlcommons/logging demands it (compliance_checker/training_3.0.0 to
// training_6.1.0, closed_<benchmark>.yaml, key eval_accuracy; read in November 2026).
constexpr QualityTarget k_targets[] = {
    {"bert", 0.72, true},
    {"deepseekv3_671b", 3.6, false},
    {"dlrm", 0.8025, true},
    {"dlrm_dcnv2", 0.80275, true},
    {"flux1", 0.586, false},
    {"gnn", 0.72, true},
    {"gpt3", 2.69, false},
    {"gpt_oss_20b", 3.34, false},
    {"llama2_70b_lora", 0.925, false},
    {"llama31_405b", 5.6, false},
    {"llama31_8b", 3.3, false},
    {"minigo", 0.5, true},
    {"resnet", 0.759, true},
    {"retinanet", 0.34, true},
    {"rgat", 0.72, true},
    {"rnnt", 0.058, false},
    {"ssd", 0.34, true},
    {"unet3d", 0.908, true},
};

}  // namespace

const QualityTarget* find_quality_target(const std::optional<std::string>& benchmark) {
  const auto* found =
      std::ranges::find(k_targets, std::string_view(benchmark ? *benchmark : ""), &QualityTarget::benchmark);
  return found == std::end(k_targets) ? nullptr : found;
}

std::optional<bool> reaches_target(const TimeToTrain& time) {
  const QualityTarget* rule = find_quality_target(time.benchmark);
  std::optional<bool> is_rising = time.higher_is_better;
  if (rule != nullptr) is_rising = rule->higher_is_better;
  if (!is_rising || !time.target_quality || !time.reached_quality) return std::nullopt;
  const double reached = *time.reached_quality, target = *time.target_quality;
  if (!std::isfinite(reached) || !std::isfinite(target)) return std::nullopt;
  return *is_rising ? reached >= target : reached <= target;
}

std::optional<double> demanded_target(const TimeToTrain& time) {
  constexpr double k_rounding = 1e-5;  // a log may print single precision
  const QualityTarget* rule = find_quality_target(time.benchmark);
  if (rule == nullptr || time.division != "closed" || !time.target_quality) return std::nullopt;
  if (std::abs(*time.target_quality - rule->target) <= k_rounding * rule->target) return std::nullopt;
  return rule->target;
}

}  // namespace tprimat
