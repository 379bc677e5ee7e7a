#include "run/layout_ranking.h"

#include <fmt/format.h>

#include <algorithm>

#include "stats/descriptive.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

constexpr double k_alike = 1e-5;          // the planner calls layouts closer than this equally fast
constexpr size_t k_min_to_correlate = 3;  // layouts: the ranks of two agree or are reversed

// Places from 1 of ascending values; those within `tolerance` of the first of their group share its place.
std::vector<int64_t> places_of(const std::vector<double>& ascending, double tolerance) {
  std::vector<int64_t> places;
  size_t first = 0;
  for (size_t i = 0; i < ascending.size(); ++i) {
    if (ascending[i] > ascending[first] * (1 + tolerance)) first = i;
    places.push_back(static_cast<int64_t>(first) + 1);
  }
  return places;
}

std::string explain(const RunOutcome& outcome) {
  const bool is_complete = outcome.status == RunStatus::complete;
  return fmt::format("run {} {}: {}", outcome.run, enum_name(outcome.status),
                     outcome.reason.value_or(is_complete ? "no step time" : "unknown reason"));
}

void take_runs(RankedLayout& layout, const LayoutPlan& plan, const std::vector<RunOutcome>& outcomes) {
  std::vector<double> seconds;
  for (const RunOutcome& each : outcomes) {
    if (each.framework != plan.framework || each.model != plan.model || each.strategy != layout.strategy) continue;
    if (each.status == RunStatus::complete && each.step_seconds) {
      seconds.push_back(*each.step_seconds);
    } else {
      layout.without_figure.push_back(explain(each));
      if (!layout.ended_as) layout.ended_as = each.status;
    }
  }
  layout.runs_measured = static_cast<int64_t>(seconds.size());
  if (seconds.empty()) return;
  layout.measured_seconds = median(seconds);
  layout.over_predicted = *layout.measured_seconds / layout.predicted_seconds;
  const auto [least, most] = std::ranges::minmax(seconds);
  if (seconds.size() > 1) layout.spread = (most - least) / *layout.measured_seconds;
}

void rank_predicted(std::vector<RankedLayout>& layouts) {
  std::vector<double> seconds;
  for (const RankedLayout& each : layouts) seconds.push_back(each.predicted_seconds);
  const std::vector<int64_t> places = places_of(seconds, k_alike);
  for (size_t i = 0; i < layouts.size(); ++i) layouts[i].predicted_rank = places[i];
}

// The measured ones, fastest first; of equally fast ones the one that was predicted to be faster.
std::vector<RankedLayout*> rank_measured(std::vector<RankedLayout>& layouts) {
  std::vector<RankedLayout*> measured;
  for (RankedLayout& each : layouts)
    if (each.measured_seconds) measured.push_back(&each);
  std::ranges::stable_sort(measured, {}, [](const RankedLayout* each) { return *each->measured_seconds; });
  std::vector<double> seconds;
  for (const RankedLayout* each : measured) seconds.push_back(*each->measured_seconds);
  const std::vector<int64_t> places = places_of(seconds, 0);
  for (size_t i = 0; i < measured.size(); ++i) measured[i]->measured_rank = places[i];
  return measured;
}

std::optional<double> correlate(const std::vector<RankedLayout*>& measured) {
  if (measured.size() < k_min_to_correlate) return std::nullopt;
  std::vector<double> predicted, seconds;
  for (const RankedLayout* each : measured) {
    predicted.push_back(static_cast<double>(each->predicted_rank));  // so that what is planned as alike is a tie
    seconds.push_back(*each->measured_seconds);
  }
  const auto [first, last] = std::ranges::minmax(predicted);
  if (first == last || measured.front()->measured_seconds == measured.back()->measured_seconds) return std::nullopt;
  return spearman(predicted, seconds);
}

// ", which is within the spread of its runs", where two or more runs of both layouts show one.
std::string compare_with_spread(const RankedLayout& first, const RankedLayout& best, double behind) {
  if (!first.spread || !best.spread) return "";
  return behind < std::max(*first.spread, *best.spread) ? ", within the spread of the runs"
                                                        : ", more than the spread of the runs";
}

// Of the planner's first choice, `first`.
std::string judge_choice(const RankedLayout& first, const RankedLayout& best, double behind) {
  const std::string choice = fmt::format("the planner's first choice, {},", print_layout_sizes(first));
  if (first.measured_rank == 1) return choice + " is the fastest measured layout";
  const std::string fastest = fmt::format("the fastest measured layout is {} (predicted rank {})",
                                          print_layout_sizes(best), best.predicted_rank);
  if (!first.measured_seconds) return fmt::format("{}; {} was not measured", fastest, choice);
  return fmt::format("{}; {} takes {} longer{}", fastest, choice, format_percent(behind),
                     compare_with_spread(first, best, behind));
}

std::string judge(const LayoutRanking& ranking, const std::vector<RankedLayout*>& measured) {
  if (measured.empty()) return "No layout was measured, so the planner's ranking is not judged.";
  if (measured.size() == 1)
    return fmt::format("Only {} was measured, so the planner's ranking is not judged.",
                       print_layout_sizes(*measured.front()));
  std::string text = judge_choice(ranking.layouts.front(), *measured.front(), ranking.first_choice_behind.value_or(0));
  text.front() = 'T';
  if (ranking.rank_correlation)
    text +=
        fmt::format("; the rank correlation of the {} layouts is {:.2f}", measured.size(), *ranking.rank_correlation);
  return text + ".";
}

bool has_any(const LayoutRanking& ranking, bool (*holds)(const RankedLayout&)) {
  return std::ranges::any_of(ranking.layouts, holds);
}

// The columns that not every table has.
struct Columns {
  bool chunks, experts, ends, spread;
};

std::vector<std::string> header_of(const Columns& columns) {
  std::vector<std::string> header = {"predicted rank", "TP", "PP"};
  const auto add = [&](std::initializer_list<const char*> names) {
    header.insert(header.end(), names.begin(), names.end());
  };
  if (columns.chunks) add({"VP"});
  add({"DP", "CP"});
  if (columns.experts) add({"EP", "ETP"});
  add({"ZeRO", "MBS", "recompute"});
  if (columns.ends) add({"ends"});
  add({"predicted step", "measured step"});
  if (columns.spread) add({"spread"});
  add({"measured/predicted", "measured rank"});
  return header;
}

std::vector<std::string> row_of(const RankedLayout& each, const Columns& columns) {
  std::vector<std::string> row;
  const auto add = [&](std::string cell) { row.push_back(std::move(cell)); };
  const auto add_numbers = [&](std::initializer_list<int64_t> numbers) {
    for (const int64_t number : numbers) add(std::to_string(number));
  };
  add_numbers({each.predicted_rank, each.tensor, each.pipeline});
  if (columns.chunks) add_numbers({each.chunks});
  add_numbers({each.data, each.context});
  if (columns.experts) add_numbers({each.expert, each.expert_tensor});
  add_numbers({each.zero_stage, each.micro_batch});
  add(std::string(enum_name(each.recompute)));
  if (columns.ends) add(each.ends_as_layers ? "as layers" : "-");
  add(format_duration(each.predicted_seconds));
  const std::string ending = each.ended_as ? std::string(enum_name(*each.ended_as)) : "-";
  add(each.measured_seconds ? format_duration(*each.measured_seconds) : ending);
  if (columns.spread) add(each.spread ? format_percent(*each.spread) : "-");
  add(each.over_predicted ? format_fixed(*each.over_predicted, 2) : "-");
  add(each.measured_rank ? std::to_string(*each.measured_rank) : "-");
  return row;
}

TextTable table_of(const LayoutRanking& ranking) {
  const Columns columns{has_any(ranking, [](const RankedLayout& each) { return each.chunks > 1; }),
                        has_any(ranking, [](const RankedLayout& each) { return each.expert_ranks.has_value(); }),
                        has_any(ranking, [](const RankedLayout& each) { return each.ends_as_layers; }),
                        has_any(ranking, [](const RankedLayout& each) { return each.spread.has_value(); })};
  TextTable table;
  table.header = header_of(columns);
  for (size_t i = 0; i < table.header.size(); ++i)
    if (table.header[i] != "recompute" && table.header[i] != "ends") table.right.push_back(i);
  for (const RankedLayout& each : ranking.layouts) table.rows.push_back(row_of(each, columns));
  return table;
}

}  // namespace

LayoutRanking rank_layouts(const LayoutPlan& plan, const std::vector<RunOutcome>& outcomes) {
  LayoutRanking ranking{plan.platform, plan.framework, plan.model, {}, {}, {}, ""};
  for (const PlannedLayout& planned : plan.layouts) {
    RankedLayout& layout = ranking.layouts.emplace_back();
    static_cast<planner::Layout&>(layout) = planned.layout;
    layout.strategy = planned.strategy;
    if (plan.sparse) layout.expert_ranks = layout.expert, layout.expert_tensor_ranks = layout.expert_tensor;
    layout.zero_stage = static_cast<int64_t>(planned.layout.sharding);
    layout.predicted_seconds = planned.step_seconds;
    take_runs(layout, plan, outcomes);
  }
  rank_predicted(ranking.layouts);
  const std::vector<RankedLayout*> measured = rank_measured(ranking.layouts);
  ranking.rank_correlation = correlate(measured);
  if (!measured.empty() && ranking.layouts.front().measured_seconds)
    ranking.first_choice_behind = *ranking.layouts.front().measured_seconds / *measured.front()->measured_seconds - 1;
  ranking.judgement = judge(ranking, measured);
  return ranking;
}

std::string render_layout_ranking(const LayoutRanking& ranking) {
  std::string text =
      fmt::format("{} {} on {}: the planner's layouts, predicted and measured\n\n{}\n", enum_name(ranking.framework),
                  ranking.model, enum_name(ranking.platform), render_text(table_of(ranking)));
  for (const RankedLayout& each : ranking.layouts)
    for (const std::string& reason : each.without_figure)
      text += fmt::format("{}, {}\n", print_layout_sizes(each), reason);
  return text + ranking.judgement + "\n";
}

}  // namespace tprimat::suite
