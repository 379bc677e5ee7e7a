#include "report/plan_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "report/plot_script.h"
#include "text/format.h"

namespace tprimat::results {
namespace embedded {
extern const std::string_view validation_gp, scaling_gp;
}

namespace {

constexpr size_t k_columns = 3;

Frame panel_frame(size_t index, size_t rows) {
  const double width = 1.0 / k_columns, height = 1.0 / static_cast<double>(rows);
  const auto row = static_cast<double>(index / k_columns), column = static_cast<double>(index % k_columns);
  return {column * width, 1 - (row + 1) * height, width, height};
}

bool is_drawable(const std::optional<double>& rate) { return rate && *rate > 0 && *rate < 1e30; }

void draw_rates(PlotScript& script, const Frame& frame, const planner::PlannedTable& table) {
  std::string title = printable(table.table), rows;
  for (const planner::PlanErrors& errors : table.errors)
    if (errors.of == "all")
      title += fmt::format(" ({}): median {}, P90 {}", errors.rows, format_percent(errors.median),
                           format_percent(errors.p90));
  double low = INFINITY, high = 0;
  for (const planner::PlannedRow& row : table.rows) {
    if (!is_drawable(row.published) || !is_drawable(row.predicted)) continue;
    rows += fmt::format("{:.6g} {:.6g}\n", *row.published, *row.predicted);
    low = std::min(low, *row.published), high = std::max(high, *row.published);
  }
  script.begin_panel(frame, title);
  script.set("shows", rows.empty() ? "nothing predicted" : "rates");
  if (!rows.empty()) script.set("low", low), script.set("high", high), script.set_block("rows", rows);
  script.draw(embedded::validation_gp);
}

void draw_errors(PlotScript& script, const Frame& frame, const std::vector<planner::PlannedTable>& tables) {
  std::vector<double> errors;
  for (const planner::PlannedTable& table : tables)
    for (const planner::PlannedRow& row : table.rows)
      if (row.error) errors.push_back(100 * std::fabs(*row.error));
  std::ranges::sort(errors);
  std::string rows;
  for (size_t i = 0; i < errors.size(); ++i)
    rows += fmt::format("{:.6g} {:.6g}\n", errors[i],
                        100 * static_cast<double>(i + 1) / static_cast<double>(errors.size()));
  script.begin_panel(frame, fmt::format("all {} rows", errors.size()));
  script.set("shows", errors.empty() ? "" : "errors");
  if (!errors.empty()) script.set_block("rows", rows);
  script.draw(embedded::validation_gp);
}

using PlanCurve = std::vector<const planner::PlanReport*>;

// The plans of each GPU model that fit, fewest GPUs first.
std::vector<PlanCurve> list_curves(const planner::PlanComparison& comparison) {
  std::vector<PlanCurve> curves;
  for (const planner::PlanReport& plan : comparison.plans) {
    if (!plan.training) continue;
    if (curves.empty() || curves.back().front()->gpu != plan.gpu) curves.emplace_back();
    curves.back().push_back(&plan);
  }
  return curves;
}

std::vector<double> list_ticks(const planner::PlanComparison& comparison) {
  std::vector<double> ticks;
  for (const planner::PlanReport& plan : comparison.plans) ticks.push_back(static_cast<double>(plan.gpus));
  std::ranges::sort(ticks);
  ticks.erase(std::unique(ticks.begin(), ticks.end()), ticks.end());
  return ticks;
}

std::string describe_batch(const planner::PlanComparison& comparison) {
  const auto [fewest, most] =
      std::ranges::minmax_element(comparison.plans, [](const planner::PlanReport& a, const planner::PlanReport& b) {
        return a.global_batch_size < b.global_batch_size;
      });
  if (comparison.scaling == planner::Scaling::strong)
    return fmt::format("strong scaling, GBS {}", fewest->global_batch_size);
  return fmt::format("weak scaling, GBS {} to {}", fewest->global_batch_size, most->global_batch_size);
}

}  // namespace

std::string render_plan_plot(const std::vector<planner::PlannedTable>& tables, PlotFormat format) {
  const size_t panels = tables.size() + 1, rows = (panels + k_columns - 1) / k_columns;
  PlotScript script(format, {330 * static_cast<int>(k_columns), 290 * static_cast<int>(rows), 8, 9});
  for (size_t i = 0; i < tables.size(); ++i) draw_rates(script, panel_frame(i, rows), tables[i]);
  draw_errors(script, panel_frame(tables.size(), rows), tables);
  return std::move(script).finish();
}

std::string render_scaling_plot(const planner::PlanComparison& comparison, PlotFormat format) {
  const std::vector<PlanCurve> curves = list_curves(comparison);
  if (curves.empty())
    throw Error(Problem{"no layout fits into memory, so there is nothing to plot", "--plot", "plan for more GPUs"},
                ExitStatus::work_failed);
  std::vector<std::string> names;
  std::string plans, ideal;
  double low = INFINITY, high = 0, efficient = 0;
  for (const PlanCurve& curve : curves) {
    names.push_back(curve.front()->gpu);
    // Linear scaling from the fewest GPUs.
    const double each = curve.front()->training->tokens_per_second / static_cast<double>(curve.front()->gpus);
    for (const planner::PlanReport* plan : curve) {
      const double rate = plan->training->tokens_per_second, linear = each * static_cast<double>(plan->gpus);
      plans += fmt::format("{} {:.8g} {:.8g}\n", plan->gpus, rate, *plan->efficiency * 100);
      low = std::min({low, rate, linear}), high = std::max({high, rate, linear});
      efficient = std::max(efficient, *plan->efficiency * 100);
      if (plan == curve.front() || plan == curve.back()) ideal += fmt::format("{} {:.8g}\n", plan->gpus, linear);
    }
    plans += "\n\n", ideal += "\n\n";
  }
  PlotScript script(format, {2 * 760, 640});
  const planner::PlanReport& first = comparison.plans.front();
  script.set("title", first.model + ": fastest layouts");
  script.set("subtitle", fmt::format("predicted: {}, {}, SL {}, {}", first.framework, enum_name(first.precision),
                                     first.sequence_length, describe_batch(comparison)));
  script.set("gpu", names), script.set("ticks", list_ticks(comparison));
  script.set("lowest_rate", low), script.set("highest_rate", high), script.set("highest_efficiency", efficient);
  script.set_block("plans", plans), script.set_block("ideal", ideal);
  script.draw(embedded::scaling_gp);
  return std::move(script).finish();
}

}  // namespace tprimat::results
