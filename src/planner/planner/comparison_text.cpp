#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "planner/plan_comparison.h"
#include "text/format.h"

namespace tprimat::planner {
namespace {

// Which columns the plans have something for.
struct ComparisonColumns {
  bool batch = false, interval = false, efficiency = false, usd = false, energy = false;
  bool hours = true;  // the longest training takes hours
};

ComparisonColumns find_columns(const PlanComparison& comparison) {
  ComparisonColumns columns;
  columns.efficiency = comparison.scaling.has_value();
  for (const PlanReport& plan : comparison.plans) {
    columns.batch |= plan.global_batch_size != comparison.plans.front().global_batch_size;
    columns.hours &= !plan.training || !plan.training->days || are_hours(*plan.training->days);
    columns.interval |= plan.interval.has_value();
    columns.usd |= plan.training && plan.training->usd;
    columns.energy |= plan.training && plan.training->megawatt_hours;
  }
  return columns;
}

std::string whole(int64_t number) {
  return number < 100 ? std::to_string(number) : format_count(static_cast<double>(number));
}

// What all the fastest layouts split among their data-parallel ranks.
std::optional<Sharding> common_sharding(const PlanComparison& comparison) {
  std::optional<Sharding> common;
  for (const PlanReport& plan : comparison.plans) {
    if (plan.ranked.empty()) continue;
    if (common && *common != plan.ranked.front().sharding) return std::nullopt;
    common = plan.ranked.front().sharding;
  }
  return common;
}

// A plan whose fastest layout is known.
struct SolvedPlan {
  const PlanReport& plan;
  const PlanLine& best;
  const TrainingOutlook& training;
};

struct FigureColumn {
  std::string title;
  bool right;
  std::function<std::string(const SolvedPlan&)> cell;
};

// Sharding only where it differs.
std::vector<FigureColumn> figure_columns(const PlanComparison& comparison, const ComparisonColumns& shown) {
  using P = SolvedPlan;
  std::vector<FigureColumn> all = {{"fastest layout", false, [](const P& p) { return format_layout(p.best); }},
                                   {"step", true, [](const P& p) { return format_duration(p.best.step_seconds); }}};
  const auto add = [&](const std::string& title, auto cell) { all.push_back({title, true, cell}); };
  if (common_sharding(comparison))
    all.front().cell = [](const P& p) { return format_sizes(p.best) + format_further(p.best); };
  if (shown.interval) add("80 %", [](const P& p) { return p.plan.interval ? format_interval(p.plan) : "-"; });
  add("tokens/s/GPU", [](const P& p) { return format_count(p.best.tokens_per_second_per_gpu); });
  add("tokens/s", [](const P& p) { return format_si(p.training.tokens_per_second, ""); });
  add("MFU", [](const P& p) { return format_percent(p.best.mfu); });
  if (shown.efficiency) add("efficiency", [](const P& p) { return format_percent(*p.plan.efficiency); });
  add("memory", [](const P& p) { return format_gb(p.best.memory_bytes); });
  add("goodput", [](const P& p) { return format_percent(p.training.goodput.share); });
  add(format_tokens(comparison.tokens) + " tokens",
      [hours = shown.hours](const P& p) { return p.training.days ? format_days(*p.training.days, hours) : "never"; });
  if (shown.usd) add("cost", [](const P& p) { return p.training.usd ? format_usd(*p.training.usd) : "-"; });
  if (shown.energy)
    add("energy",
        [](const P& p) { return p.training.megawatt_hours ? format_megawatt_hours(*p.training.megawatt_hours) : "-"; });
  return all;
}

std::string name_misfit(const PlanReport& plan) {
  if (!plan.smallest) return "none is legal";
  return fmt::format("none fits: {} of {}", format_gb(plan.smallest->memory_bytes), format_gb(plan.memory_bytes));
}

std::string render_table(const PlanComparison& comparison, const ComparisonColumns& shown) {
  const std::vector<FigureColumn> columns = figure_columns(comparison, shown);
  TextTable table{{"", "GPU", "GPUs"}, {}, {2}};
  const auto add_column = [&](const std::string& title, bool right) {
    if (right) table.right.push_back(table.header.size());
    table.header.push_back(title);
  };
  if (shown.batch) add_column("GBS", true);
  for (const FigureColumn& column : columns) add_column(column.title, column.right);
  for (const PlanReport& plan : comparison.plans) {
    const bool marked = !plan.ranked.empty() && plan.ranked.front().on_frontier;
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {marked ? "*" : "", plan.gpu, whole(plan.gpus)};
    if (shown.batch) row.push_back(whole(plan.global_batch_size));
    if (plan.training)
      for (const FigureColumn& column : columns)
        row.push_back(column.cell({plan, plan.ranked.front(), *plan.training}));
    else
      row.push_back(name_misfit(plan));
    row.resize(table.header.size(), "-");
  }
  return render_text(table);
}

std::string name_request(const PlanReport& plan, const PlanComparison& comparison) {
  const auto others = std::ranges::find_if(
      comparison.plans, [&](const PlanReport& each) { return each.global_batch_size != plan.global_batch_size; });
  std::string batch = fmt::format("GBS {}", plan.global_batch_size);
  if (others != comparison.plans.end()) batch += " and growing with the GPUs";
  const auto sharding = common_sharding(comparison);
  return fmt::format("{}, {}, {}, SL {}, {}{}\n\n", plan.model, plan.framework, enum_name(plan.precision),
                     plan.sequence_length, batch, sharding ? ", " + name_sharding(*sharding) : "");
}

std::string list_frontier_figures(const PlanComparison& comparison) {
  std::string text;
  for (const std::string& figure : comparison.frontier_of)
    text += (text.empty() ? "" : ", ") + std::string(figure == "days"           ? "time"
                                                     : figure == "memory_bytes" ? "memory"
                                                     : figure == "usd"          ? "cost"
                                                                                : "energy");
  return text;
}

std::string list_parts(const PlanComparison& comparison, bool (*applies)(const PlanReport&)) {
  std::vector<std::string> parts;
  for (const PlanReport& plan : comparison.plans)
    if (applies(plan) && std::ranges::find(parts, plan.gpu) == parts.end()) parts.push_back(plan.gpu);
  return join(parts, ", ");
}

const Goodput* first_goodput(const PlanComparison& comparison) {
  for (const PlanReport& plan : comparison.plans)
    if (plan.training) return &plan.training->goodput;
  return nullptr;
}

bool never_ends(const PlanReport& plan) { return plan.training && !plan.training->days; }

// Which batches would have legal layouts, for the numbers of GPUs where this one has none.
std::string render_legal_batches(const PlanComparison& comparison) {
  std::map<int64_t, std::vector<std::string>> counts;
  for (const PlanReport& plan : comparison.plans) {
    if (!plan.batch_multiple) continue;
    auto& named = counts[*plan.batch_multiple];
    if (const std::string count = whole(plan.gpus); std::ranges::find(named, count) == named.end())
      named.push_back(count);
  }
  std::string text;
  for (const auto& [multiple, named] : counts)
    text += fmt::format("none is legal: on {} GPUs choose a GBS divisible by {}\n", join(named, ", "), multiple);
  return text;
}

std::string render_memory_sources(const PlanComparison& comparison) {
  std::map<std::string, std::string> sources;
  for (const PlanReport& plan : comparison.plans)
    if (!plan.memory_source.empty())
      sources[plan.gpu] =
          fmt::format("memory of {}: {}, from {}\n", plan.gpu, format_gb(plan.memory_bytes), plan.memory_source);
  std::string text;
  for (const auto& [gpu, line] : sources) text += line;
  return text;
}

bool counts_ends(const PlanReport& plan) { return !plan.ranked.empty() && plan.ranked.front().ends_as_layers; }

std::string render_notes(const PlanComparison& comparison, const ComparisonColumns& columns) {
  std::string text;
  if (!comparison.frontier.empty()) {
    text = fmt::format(
        "* on the Pareto frontier: no other layout beats it in {} at once; slower layouts of the same row can be on it "
        "too: --json lists all {}\n",
        list_frontier_figures(comparison), comparison.frontier.size());
  }
  if (columns.interval)
    text +=
        "80 %: interval of the step by errors of like trainings; where two overlap, the faster one is not certain\n";
  if (const Goodput* goodput = first_goodput(comparison)) text += "goodput: " + describe_failures(*goodput) + "\n";
  if (std::ranges::any_of(comparison.plans, never_ends)) text += fmt::format("never: {}\n", k_never_ends);
  text += render_legal_batches(comparison) + render_memory_sources(comparison);
  if (columns.energy) text += "energy: an upper bound, for GPUs alone at their thermal design power\n";
  const std::string unpriced =
      list_parts(comparison, [](const PlanReport& plan) { return plan.training && !plan.training->usd; });
  if (columns.usd && !unpriced.empty()) text += fmt::format("no price is known for {}\n", unpriced);
  if (std::ranges::any_of(comparison.plans, counts_ends))
    text += "ends as layers: embedding and loss count as layers when the pipeline is split into stages\n";
  if (columns.efficiency) text += "efficiency: tokens/s/GPU relative to the smallest number of GPUs that fits\n";
  const std::string believed = list_parts(comparison, [](const PlanReport& plan) { return !plan.calibrated; });
  if (!believed.empty())
    text += fmt::format("{}: these figures rest on priors, not on measurements (docs/planner.md)\n", believed);
  return text;
}

std::string render_answers(const PlanComparison& comparison) {
  std::string text;
  for (const PlanAnswer& answer : comparison.answers) text += answer.sentence + "\n";
  return text.empty() ? "" : "\n" + text;
}

std::string render_machine(const PlanComparison& comparison) {
  if (comparison.machine.empty()) return "";
  std::string text =
      "\na cluster of nodes like the one that was measured:\n" + render_machine_figures(comparison.machine);
  for (const std::string& note : comparison.machine_notes) text += note + "\n";
  return text;
}

bool has_one_count(const PlanComparison& comparison) {
  return std::ranges::all_of(comparison.plans,
                             [&](const PlanReport& plan) { return plan.gpus == comparison.plans.front().gpus; });
}

}  // namespace

std::string render_plan_comparison(const PlanComparison& comparison) {
  std::string text;
  if (comparison.plans.size() > 1) {
    const ComparisonColumns shown = find_columns(comparison);
    text = name_request(comparison.plans.front(), comparison) + render_table(comparison, shown) + "\n" +
           render_notes(comparison, shown);
  }
  if (has_one_count(comparison))
    for (const PlanReport& plan : comparison.plans) text += (text.empty() ? "" : "\n") + render_plan_report(plan);
  if (!comparison.assumptions.empty()) text += fmt::format("\nassumed: {}\n", join(comparison.assumptions, "; "));
  return text + render_machine(comparison) + render_answers(comparison);
}

}  // namespace tprimat::planner
