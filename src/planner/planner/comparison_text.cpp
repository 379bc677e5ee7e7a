#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "planner/plan_comparison.h"
#include "text/format.h"

namespace tprimat::planner {
namespace {

// Which columns the plans have something for.
struct ComparisonColumns {
  bool batch = false, efficiency = false, usd = false, energy = false;
  bool hours = true;  // the longest training takes hours
};

ComparisonColumns find_columns(const PlanComparison& comparison) {
  ComparisonColumns columns;
  columns.efficiency = comparison.scaling.has_value();
  for (const PlanReport& plan : comparison.plans) {
    columns.batch |= plan.global_batch_size != comparison.plans.front().global_batch_size;
    columns.hours &= !plan.training || !plan.training->days || are_hours(*plan.training->days);
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

class ComparisonTable {
 public:
  explicit ComparisonTable(const PlanComparison& comparison)
      : comparison_(comparison), columns_(find_columns(comparison)) {
    add_column("", false), add_column("GPU", false), add_column("GPUs", true);
    if (columns_.batch) add_column("GBS", true);
    add_column("fastest layout", false), add_column("step", true), add_column("tokens/s/GPU", true);
    add_column("tokens/s", true), add_column("MFU", true);
    if (columns_.efficiency) add_column("efficiency", true);
    add_column("memory", true), add_column("goodput", true),
        add_column(format_tokens(comparison.tokens) + " tokens", true);
    if (columns_.usd) add_column("cost", true);
    if (columns_.energy) add_column("energy", true);
  }

  std::string render() {
    for (const PlanReport& plan : comparison_.plans) table_.rows.push_back(row_of(plan));
    return render_text(table_);
  }

 private:
  void add_column(const std::string& name, bool right) {
    if (right) table_.right.push_back(table_.header.size());
    table_.header.push_back(name);
  }

  std::vector<std::string> row_of(const PlanReport& plan) const {
    std::vector<std::string> row = {!plan.ranked.empty() && plan.ranked.front().on_frontier ? "*" : "", plan.gpu,
                                    whole(plan.gpus)};
    if (columns_.batch) row.push_back(whole(plan.global_batch_size));
    if (!plan.training) {
      row.push_back(plan.smallest ? fmt::format("none fits: {} of {}", format_gb(plan.smallest->memory_bytes),
                                                format_gb(plan.memory_bytes))
                                  : "none is legal");
      row.resize(table_.header.size(), "-");
      return row;
    }
    add_figures(row, plan);
    return row;
  }

  // Sharding only where it differs.
  std::string describe_layout(const PlanLine& line) const {
    if (!common_sharding(comparison_)) return format_layout(line);
    return format_sizes(line) + format_further(line);
  }

  void add_figures(std::vector<std::string>& row, const PlanReport& plan) const {
    const PlanLine& best = plan.ranked.front();
    const TrainingOutlook& training = *plan.training;
    row.insert(row.end(),
               {describe_layout(best), format_duration(best.step_seconds), format_count(best.tokens_per_second_per_gpu),
                format_si(training.tokens_per_second, ""), format_percent(best.mfu)});
    if (columns_.efficiency) row.push_back(format_percent(*plan.efficiency));
    row.insert(row.end(), {format_gb(best.memory_bytes), format_percent(training.goodput.share),
                           training.days ? format_days(*training.days, columns_.hours) : "never"});
    if (columns_.usd) row.push_back(training.usd ? format_usd(*training.usd) : "-");
    if (columns_.energy) row.push_back(training.megawatt_hours ? format_megawatt_hours(*training.megawatt_hours) : "-");
  }

  const PlanComparison& comparison_;
  ComparisonColumns columns_;
  TextTable table_;
};

std::string name_request(const PlanReport& plan, const PlanComparison& comparison) {
  const auto others = std::find_if(comparison.plans.begin(), comparison.plans.end(), [&](const PlanReport& each) {
    return each.global_batch_size != plan.global_batch_size;
  });
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
    if (applies(plan) && std::find(parts.begin(), parts.end(), plan.gpu) == parts.end()) parts.push_back(plan.gpu);
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
    if (const std::string count = whole(plan.gpus); std::find(named.begin(), named.end(), count) == named.end())
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
        "* this layout is on the Pareto frontier: no layout here beats it in {} at once; slower layouts of a row may "
        "be on it too: --json lists all {}\n",
        list_frontier_figures(comparison), comparison.frontier.size());
  }
  if (const Goodput* goodput = first_goodput(comparison)) text += "goodput: " + describe_failures(*goodput) + "\n";
  if (std::any_of(comparison.plans.begin(), comparison.plans.end(), never_ends))
    text += fmt::format("never: {}\n", k_never_ends);
  text += render_legal_batches(comparison) + render_memory_sources(comparison);
  if (columns.energy) text += "energy: an upper bound, for GPUs alone at their thermal design power\n";
  const std::string unpriced =
      list_parts(comparison, [](const PlanReport& plan) { return plan.training && !plan.training->usd; });
  if (columns.usd && !unpriced.empty()) text += fmt::format("no price is known for {}\n", unpriced);
  if (std::any_of(comparison.plans.begin(), comparison.plans.end(), counts_ends))
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

bool has_one_count(const PlanComparison& comparison) {
  return std::all_of(comparison.plans.begin(), comparison.plans.end(),
                     [&](const PlanReport& plan) { return plan.gpus == comparison.plans.front().gpus; });
}

}  // namespace

std::string render_plan_comparison(const PlanComparison& comparison) {
  std::string text;
  if (comparison.plans.size() > 1)
    text = name_request(comparison.plans.front(), comparison) + ComparisonTable(comparison).render() + "\n" +
           render_notes(comparison, find_columns(comparison));
  if (has_one_count(comparison))
    for (const PlanReport& plan : comparison.plans) text += (text.empty() ? "" : "\n") + render_plan_report(plan);
  if (!comparison.assumptions.empty()) text += fmt::format("\nassumed: {}\n", join(comparison.assumptions, "; "));
  return text + render_answers(comparison);
}

}  // namespace tprimat::planner
