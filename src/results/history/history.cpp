#include "history/history.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "compare/gates.h"
#include "history/trend_audit.h"

namespace tprimat::results {
namespace {

const Metric& require_metric(const std::string& key) {
  if (key.empty()) return metrics().front();
  if (const Metric* metric = find_metric(key)) return *metric;
  throw Error(Problem{fmt::format("unknown metric \"{}\"", key), "--metric", suggest_metric(key)});
}

template <class T>
bool lets_pass(const std::vector<T>& wanted, const std::string& name) {
  if (wanted.empty()) return true;
  if constexpr (NamedEnum<T>)
    return std::any_of(wanted.begin(), wanted.end(), [&](T each) { return enum_name(each) == name; });
  else
    return std::find(wanted.begin(), wanted.end(), name) != wanted.end();
}

bool is_selected(const SeriesKey& key, const CompareOptions& options) {
  return lets_pass(options.platforms, key.platform) && lets_pass(options.frameworks, key.framework) &&
         lets_pass(options.models, key.model) && lets_pass(options.strategies, key.strategy);
}

void select_files(IndexedFolder& index, const CompareOptions& options, const std::string& folder) {
  if (index.files.empty())
    throw Error(Problem{"holds no results", folder, "give --history the directory that holds the results"});
  const size_t all = index.files.size();
  std::erase_if(index.files, [&](const IndexedFile& file) { return !is_selected(file.entry.series, options); });
  if (index.files.empty())
    throw Error(
        Problem{fmt::format("none of {} results passes the filters", all), "", "drop a filter, or check its spelling"});
}

bool is_of(const HistoryPoint& point, const std::string& wanted, const std::filesystem::path& folder) {
  const auto is_wanted = [&](const std::string& each) {
    const std::filesystem::path path(each);
    return each == wanted || path.filename() == wanted || path.stem() == wanted || (folder / path) == wanted;
  };
  return std::any_of(point.paths.begin(), point.paths.end(), is_wanted) ||
         std::any_of(point.copies.begin(), point.copies.end(),
                     [&](const CopiedRun& copy) { return is_wanted(copy.path); });
}

// What the newest point is held against; nothing where the series has no such point.
std::optional<size_t> find_baseline(const Trend& trend, const History& history, const std::string& wanted) {
  const size_t newest = trend.points.size() - 1;
  std::optional<size_t> found, previous;
  for (const size_t i : trend.known) {
    if (i == newest) continue;
    previous = i;
    if (is_of(trend.points[i], wanted, history.folder)) found = i;
  }
  if (wanted == "best" && previous) {
    const double sign = history.metric->better == Direction::lower_is_better ? -1 : 1;
    for (const size_t i : trend.known)
      if (i != newest && (!found || sign * trend.points[i].figure->value > sign * trend.points[*found].figure->value))
        found = i;
  }
  return wanted.empty() ? previous : found;
}

std::vector<std::string> paths_of(const History& history, const HistoryPoint& point) {
  std::vector<std::string> paths;
  for (const std::string& path : point.paths) paths.push_back((history.folder / path).string());
  return paths;
}

// A baseline by name belongs to one key; the series of others are not asked about.
bool is_elsewhere(const Trend& trend, const History& history, const std::string& baseline) {
  const auto holds_it = [&](const Trend& each) {
    return each.series == trend.series &&
           std::any_of(each.points.begin(), each.points.end(),
                       [&](const HistoryPoint& point) { return is_of(point, baseline, history.folder); });
  };
  return !baseline.empty() && baseline != "best" &&
         std::none_of(history.trends.begin(), history.trends.end(), holds_it);
}

std::string why_nothing_to_hold_against(const Trend& trend, const CompareOptions& options) {
  if (!trend.other_work.empty()) return "the newest result is " + trend.other_work;
  return options.baseline.empty() ? "the series has no earlier result"
                                  : "the baseline is the newest result itself, incomplete, or of different work";
}

// A question without anything to hold against is a question without an answer.
void note_first(const Trend& trend, const CompareOptions& options, Comparison& all) {
  for (const Gate& gate : options.gates)
    all.gates.push_back({.gate = gate,
                         .model = describe_trend_series(trend),
                         .baseline = "nothing",
                         .subject = trend.points.back().paths.front(),
                         .outcome = trend.other_work.empty() ? GateOutcome::inconclusive : GateOutcome::not_comparable,
                         .reason = why_nothing_to_hold_against(trend, options)});
}

void judge_newest(const History& history, const Trend& trend, const CompareOptions& options, Comparison& all) {
  const auto baseline = find_baseline(trend, history, options.baseline);
  if (!baseline && is_elsewhere(trend, history, options.baseline)) return;
  if (!baseline) return note_first(trend, options, all);
  std::vector<std::string> paths = paths_of(history, trend.points[*baseline]);
  CompareOptions pair = options;  // margins, tolerances and gates; who takes part is known already
  pair.platforms.clear(), pair.frameworks.clear(), pair.models.clear(), pair.strategies.clear(), pair.sort.clear();
  pair.baseline = paths.front();
  for (std::string& path : paths_of(history, trend.points.back())) paths.push_back(std::move(path));
  Comparison comparison = compare_runs(load_runs(paths), pair);
  for (ModelGroup& group : comparison.groups) {
    group.model = describe_trend_series(trend);
    all.groups.push_back(std::move(group));
  }
  for (GateResult& result : comparison.gates) {
    result.model = describe_trend_series(trend);
    all.gates.push_back(std::move(result));
  }
}

bool names_nothing(const History& history, const std::string& baseline) {
  return !baseline.empty() && baseline != "best" &&
         std::none_of(history.trends.begin(), history.trends.end(), [&](const Trend& trend) {
           return std::any_of(trend.points.begin(), trend.points.end(),
                              [&](const HistoryPoint& point) { return is_of(point, baseline, history.folder); });
         });
}

}  // namespace

History read_history(const std::filesystem::path& folder, const HistoryOptions& options) {
  const Metric& metric = require_metric(options.metric);
  History history{folder, &metric, options.last, index_folder(folder), {}, 0, {}};
  select_files(history.index, options.compare, folder.string());
  history.trends =
      gather_trends(history.index.files, metric, {options.compare.smallest_effect, options.compare.assumed_run_spread},
                    judge_by_audit(folder, options.compare.audit));
  audit_trends(history.trends, folder, metric, options.compare.audit);
  history.index.files = {};
  history.assumed_run_spread = options.compare.assumed_run_spread;
  history.comparison.smallest_effect = options.compare.smallest_effect;
  history.comparison.force = options.compare.force;
  if (names_nothing(history, options.compare.baseline))
    throw Error(Problem{fmt::format("\"{}\" matches no result", options.compare.baseline), "--baseline",
                        "name a result file of the history, or \"best\""});
  if (!options.compare.gates.empty())
    for (const Trend& trend : history.trends) judge_newest(history, trend, options.compare, history.comparison);
  return history;
}

ExitStatus history_status(const History& history) {
  if (!history.comparison.gates.empty()) return gates_status(history.comparison.gates);
  const auto any = [&](auto is_so) { return std::any_of(history.trends.begin(), history.trends.end(), is_so); };
  if (any([](const Trend& trend) { return trend.points.back().status != RunStatus::complete; }))
    return ExitStatus::work_failed;
  const bool withheld = any([](const Trend& trend) {
    return !trend.points.back().fault.empty() ||
           (trend.newest_is_known() && trend.previous && trend.previous->verdict == TrendVerdict::not_comparable);
  });
  return withheld ? ExitStatus::not_comparable : ExitStatus::done;
}

}  // namespace tprimat::results
