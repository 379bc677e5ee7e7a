#include "report/plan_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "report/plots/axis.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

constexpr Look k_predicted{0}, k_errors{4}, k_grey{0, true};

// "median 2.5 %, P90 9.0 %"
std::string describe_errors(const planner::PlannedTable& table) {
  for (const planner::PlanErrors& errors : table.errors)
    if (errors.of == "all")
      return fmt::format("{} rows: median error {}, P90 {}", errors.rows, format_percent(errors.median),
                         format_percent(errors.p90));
  return "";
}

// Published rates on both axes; a fourth more and a fourth less are dashed.
Panel plot_rates(const planner::PlannedTable& table) {
  Panel panel{.title = table.table, .note = describe_errors(table)};
  Series rows{.look = k_predicted, .has_line = false, .marks = Marks::all};
  Range published;
  for (const planner::PlannedRow& row : table.rows) {
    const Point point{row.published.value_or(NAN), row.predicted.value_or(NAN)};
    if (!is_drawable(point.x, Scale::logarithmic) || !is_drawable(point.y, Scale::logarithmic)) continue;
    rows.points.push_back(point);
    published.include(point.x, Scale::logarithmic);
  }
  if (rows.points.empty()) {
    panel.message = "nothing predicted";
    return panel;
  }
  const double low = published.low / 1.6, high = published.high * 1.6;
  panel.x = {
      .title = "published tokens/s per GPU", .scale = Scale::logarithmic, .low = low, .high = high, .has_grid = true};
  panel.y = {.title = "predicted", .scale = Scale::logarithmic, .low = low, .high = high};
  for (const double factor : {1.0, 1.25, 1 / 1.25})
    panel.references.push_back(
        {.x = low, .y = factor * low, .to_x = high, .to_y = factor * high, .is_dashed = factor != 1});
  panel.series.push_back(std::move(rows));
  return panel;
}

// The share of rows over the error that none of them exceeds, as steps.
Panel plot_errors(const std::vector<planner::PlannedTable>& tables) {
  std::vector<double> errors;
  for (const planner::PlannedTable& table : tables)
    for (const planner::PlannedRow& row : table.rows)
      if (row.error) errors.push_back(100 * std::fabs(*row.error));
  std::ranges::sort(errors);
  Panel panel{.title = fmt::format("all {} rows", errors.size())};
  if (errors.empty()) {
    panel.message = "nothing predicted";
    return panel;
  }
  panel.x = {.title = "error of the step time", .unit = "%", .low = 0, .high = 50, .has_grid = true};
  panel.y = {.title = "rows with no larger one", .unit = "%", .low = 0, .high = 100};
  Series rows{.look = {k_errors.index}, .marks = Marks::none};
  double share = 0;
  for (size_t i = 0; i < errors.size(); ++i) {
    rows.points.push_back({errors[i], share});
    rows.points.push_back({errors[i], share = 100 * static_cast<double>(i + 1) / static_cast<double>(errors.size())});
  }
  panel.series.push_back(std::move(rows));
  for (const double error : {10.0, 25.0})
    panel.references.push_back({.x = error, .y = -INFINITY, .to_x = error, .to_y = INFINITY});
  return panel;
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

// Of one GPU model: its throughput, what linear scaling from the fewest GPUs would give, and its efficiency.
void add_curve(const PlanCurve& curve, const Look& look, Section& section) {
  const planner::PlanReport& first = *curve.front();
  Series rates{.name = first.gpu, .look = look, .marks = Marks::all}, efficiencies = rates;
  Series linear{
      .name = look.index == 0 ? "linear scaling" : "", .look = k_grey, .marks = Marks::none, .is_dotted = true};
  const double each = first.training->tokens_per_second / static_cast<double>(first.gpus);
  for (const planner::PlanReport* plan : curve) {
    const auto gpus = static_cast<double>(plan->gpus);
    rates.points.push_back({gpus, plan->training->tokens_per_second});
    linear.points.push_back({gpus, each * gpus});
    efficiencies.points.push_back({gpus, *plan->efficiency * 100});
  }
  section.panels[0].series.insert(section.panels[0].series.end() - static_cast<std::ptrdiff_t>(look.index > 0),
                                  {linear});
  section.panels[0].series.push_back(rates);
  section.panels[1].series.push_back(efficiencies);
}

}  // namespace

Picture plot_plan_errors(const std::vector<planner::PlannedTable>& tables) {
  Section section{.title = "Predicted over published rates", .panel_height = 310};
  for (const planner::PlannedTable& table : tables) section.panels.push_back(plot_rates(table));
  section.panels.push_back(plot_errors(tables));
  return {.sections = {section},
          .footnote = "Dashed beside the diagonal: a fourth more and a fourth less than published."};
}

Picture plot_scaling(const planner::PlanComparison& comparison) {
  const std::vector<PlanCurve> curves = list_curves(comparison);
  if (curves.empty())
    throw Error(Problem{"no layout fits into memory, so there is nothing to plot", "--plot", "plan for more GPUs"},
                ExitStatus::work_failed);
  const planner::PlanReport& first = comparison.plans.front();
  Section section{.title = first.model + ": fastest layouts", .columns = 2, .panel_height = 420};
  section.subtitle = fmt::format("predicted: {}, {}, SL {}, {}", first.framework, enum_name(first.precision),
                                 first.sequence_length, describe_batch(comparison));
  Axis gpus{.title = "GPUs", .scale = Scale::logarithmic, .ticks = list_ticks(comparison), .has_grid = true};
  gpus.low = gpus.ticks.front() / 1.15, gpus.high = gpus.ticks.back() * 1.15;
  section.panels = {
      {.title = "throughput, tokens/s", .x = gpus, .y = {.scale = Scale::logarithmic}},
      {.title = "efficiency: tokens/s per GPU over that of the fewest GPUs, %", .x = gpus, .y = {.low = 0}}};
  for (size_t i = 0; i < curves.size(); ++i) add_curve(curves[i], {i}, section);
  return {.sections = {section}};
}

}  // namespace tprimat::results
