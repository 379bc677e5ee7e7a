#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "compare/compare_runs.h"
#include "report/plan_plots.h"
#include "report/report.h"
#include "unit/compare/sample_runs.h"

// Pictures of ordinary, of many, of hostile and of missing things.
namespace tprimat::results {

inline LoadedRuns sample_runs(size_t count, size_t steps = 60) {
  LoadedRuns runs;
  for (size_t i = 0; i < count; ++i)
    runs.runs.push_back(sample_run("run_" + std::to_string(i) + ".json", i % 2 == 0 ? Platform::nvd : Platform::amd,
                                   i % 3 == 0 ? Framework::nemo : Framework::prim, 1.0 + 0.1 * static_cast<double>(i),
                                   steps));
  return runs;
}

inline Picture picture_of(const LoadedRuns& runs) { return plot_comparison(compare_runs(runs, {})); }

inline const std::string k_hostile_name =
    "</text></svg><script>alert(1)</script> <image href='x' onload=\"y\"> & ]]> --> `date` $\\frac{1}{2}$ "
    "it's\n\x01\xff";

inline Picture hostile_picture() {
  LoadedRuns runs = sample_runs(3);
  for (LoadedRun& run : runs.runs) run.result.model_info.name = run.result.gpu_info.device_name = k_hostile_name;
  runs.runs[1].result.gpu_info.device_name = std::string(500, 'W');
  runs.runs[2].result.gpu_info.device_name = "加速器加速器加速器加速器加速器加速器加速器加速器 🚀";
  return picture_of(runs);
}

inline Picture damaged_picture() {
  LoadedRuns runs = sample_runs(4);
  RunResult &first = runs.runs[0].result, &second = runs.runs[1].result;
  first.loss_values.assign(60, NAN);
  second.loss_values[20] = NAN, second.loss_values[30] = INFINITY, second.loss_values[40] = 1e300;
  runs.runs[2].result.learning_rates.assign(60, 0);
  runs.runs[3].result.learning_rates = {-1e-300, 5e-324, 1e29};
  return picture_of(runs);
}

inline Picture empty_picture() {
  Comparison comparison = compare_runs(sample_runs(1), {});
  comparison.groups[0].contenders[0].runs[0].result = RunResult{};
  return plot_comparison(comparison);
}

inline planner::PlanComparison sample_plans(size_t models) {
  planner::PlanComparison comparison;
  for (size_t model = 0; model < models; ++model)
    for (int gpus = 8; gpus <= 4096; gpus *= 2) {
      planner::PlanReport& plan = comparison.plans.emplace_back();
      plan.gpu = "GPU <" + std::to_string(model) + ">", plan.gpus = gpus;
      plan.efficiency = std::pow(gpus / 8.0, -0.02 * static_cast<double>(model + 1));
      plan.training.emplace().tokens_per_second = 1000.0 * gpus * *plan.efficiency;
    }
  return comparison;
}

inline std::vector<Picture> draw_sample_pictures() {
  std::vector<Picture> pictures = {hostile_picture(), damaged_picture(), empty_picture(), picture_of(sample_runs(2, 1)),
                                   Picture{}};
  for (const size_t count : {1, 2, 5, 11, 80}) pictures.push_back(picture_of(sample_runs(count)));
  for (const size_t count : {1, 3, 40}) pictures.push_back(plot_scaling(sample_plans(count)));
  pictures.push_back(plot_plan_errors({}));
  return pictures;
}
inline const std::vector<Picture>& sample_pictures() {
  static const std::vector<Picture> pictures = draw_sample_pictures();
  return pictures;
}

}  // namespace tprimat::results
