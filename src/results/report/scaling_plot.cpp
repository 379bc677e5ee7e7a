#include "report/scaling_plot.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "report/draw_plot.h"
#include "report/line_chart.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

// The plans of each part that fit, fewest GPUs first.
std::vector<std::vector<const planner::PlanReport*>> curves_of(const planner::PlanComparison& comparison) {
  std::vector<std::vector<const planner::PlanReport*>> curves;
  for (const planner::PlanReport& plan : comparison.plans) {
    if (!plan.training) continue;
    if (curves.empty() || curves.back().front()->gpu != plan.gpu) curves.emplace_back();
    curves.back().push_back(&plan);
  }
  return curves;
}

ChartSeries scaling_series(const std::vector<const planner::PlanReport*>& curve,
                           double (*figure)(const planner::PlanReport&)) {
  ChartSeries series;
  series.name = curve.front()->gpu;
  for (const planner::PlanReport* plan : curve)
    series.points.push_back({static_cast<double>(plan->gpus), figure(*plan)});
  return series;
}

// What the fewest GPUs would become if each further one added as much.
ChartSeries ideal_scaling(const std::vector<const planner::PlanReport*>& curve, bool is_named) {
  ChartSeries series;
  series.guide = true;
  if (is_named) series.name = "linear scaling";
  const planner::PlanReport &fewest = *curve.front(), &most = *curve.back();
  const double each = fewest.training->tokens_per_second / static_cast<double>(fewest.gpus);
  for (const int64_t gpus : {fewest.gpus, most.gpus})
    series.points.push_back({static_cast<double>(gpus), each * static_cast<double>(gpus)});
  return series;
}

std::vector<double> count_ticks(const planner::PlanComparison& comparison) {
  std::vector<double> ticks;
  for (const planner::PlanReport& plan : comparison.plans) ticks.push_back(static_cast<double>(plan.gpus));
  std::sort(ticks.begin(), ticks.end());
  ticks.erase(std::unique(ticks.begin(), ticks.end()), ticks.end());
  return ticks;
}

std::vector<ChartPanel> scaling_panels(const planner::PlanComparison& comparison) {
  ChartPanel speed{"throughput", "GPUs", "tokens/s", true, true, false, "%.0s%c", count_ticks(comparison), {}};
  ChartPanel efficiency{"efficiency",
                        "GPUs",
                        "tokens/s/GPU over that of the fewest GPUs, %",
                        true,
                        false,
                        true,
                        "",
                        count_ticks(comparison),
                        {}};
  const auto curves = curves_of(comparison);
  for (const auto& curve : curves) {
    speed.series.push_back(
        scaling_series(curve, [](const planner::PlanReport& plan) { return plan.training->tokens_per_second; }));
    efficiency.series.push_back(
        scaling_series(curve, [](const planner::PlanReport& plan) { return *plan.efficiency * 100; }));
    efficiency.series.back().name.clear();
  }
  for (const auto& curve : curves) speed.series.push_back(ideal_scaling(curve, &curve == &curves.front()));
  return {speed, efficiency};
}

std::string describe_batch(const planner::PlanComparison& comparison) {
  const auto [fewest, most] = std::minmax_element(comparison.plans.begin(), comparison.plans.end(),
                                                  [](const planner::PlanReport& a, const planner::PlanReport& b) {
                                                    return a.global_batch_size < b.global_batch_size;
                                                  });
  if (comparison.scaling == planner::Scaling::strong)
    return fmt::format("strong scaling, GBS {}", fewest->global_batch_size);
  return fmt::format("weak scaling, GBS {} to {}", fewest->global_batch_size, most->global_batch_size);
}

}  // namespace

void draw_scaling(ProcessRunner& runner, const planner::PlanComparison& comparison, const std::string& path) {
  const PlotFormat format = require_plot_format(path, "--plot");
  if (curves_of(comparison).empty())
    throw Error(Problem{"no layout fits into memory, so there is nothing to plot", "--plot", "plan for more GPUs"},
                ExitStatus::work_failed);
  const planner::PlanReport& first = comparison.plans.front();
  const std::string subtitle = fmt::format("predicted: {}, {}, SL {}, {}", first.framework, enum_name(first.precision),
                                           first.sequence_length, describe_batch(comparison));
  require_drawn(runner,
                render_line_charts(first.model + ": fastest layouts", subtitle, scaling_panels(comparison), format),
                path);
}

}  // namespace tprimat::results
