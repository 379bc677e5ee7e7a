#include "history/history.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/parallel_for.h"
#include "compare/audit.h"
#include "compare/gates.h"
#include "compare/load_runs.h"

namespace tprimat::results {
namespace {

Contender load_contender(const std::vector<std::string>& files, const std::filesystem::path& folder, const char* label,
                         const AuditOptions& options) {
  std::vector<std::string> paths;
  for (const std::string& file : files) paths.push_back((folder / file).string());
  Contender contender{"", label, load_runs(paths).runs, {}};
  contender.findings = audit_contender(contender, options);
  return contender;
}

// Missing files are missing in the series, too, and copies are named there.
bool forbids(const Finding& finding) {
  return finding.severity == Severity::error && finding.code != "rate_missing" && finding.code != "model_missing";
}

std::optional<std::string> first_error(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings)
    if (forbids(finding)) return finding.sentence;
  return std::nullopt;
}

std::optional<std::string> why_not(const Contender& earlier, const Contender& newest, const Metric& metric,
                                   const AuditOptions& options) {
  const std::vector<Finding> of_pair = audit_pair(earlier, newest, options);
  for (const auto* findings : {&of_pair, &newest.findings, &earlier.findings})
    if (auto error = first_error(*findings)) return error;
  return why_not_compared(metric, of_pair, earlier, newest);
}

// Without an answer if a file was removed meanwhile.
void audit_step(TrendStep& step, const Trend& trend, const std::filesystem::path& folder, const Metric& metric,
                const AuditOptions& options) {
  std::optional<std::string> why;
  try {
    const Contender earlier = load_contender(trend.points[step.earlier].paths, folder, "the earlier point", options);
    const Contender newest =
        load_contender(trend.points[trend.known.back()].paths, folder, "the newest point", options);
    why = why_not(earlier, newest, metric, options);
  } catch (const Error& error) {
    why = error.problems().front().what;
  }
  if (!why) return;
  step.verdict = TrendVerdict::not_comparable;
  step.why = *why;
}

const Metric& require_metric(const std::string& key) {
  if (key.empty()) return metrics().front();
  if (const Metric* metric = find_metric(key)) return *metric;
  throw Error(Problem{fmt::format("unknown metric \"{}\"", key), "--metric", suggest_metric(key)});
}

template <class T>
bool lets_pass(const std::vector<T>& wanted, const std::string& name) {
  if (wanted.empty()) return true;
  if constexpr (NamedEnum<T>)
    return std::ranges::any_of(wanted, [&](T each) { return enum_name(each) == name; });
  else
    return std::ranges::find(wanted, name) != wanted.end();
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
  return std::ranges::any_of(point.paths, is_wanted) ||
         std::ranges::any_of(point.copies, [&](const CopiedRun& copy) { return is_wanted(copy.path); });
}

// The point to compare the newest one with; absent if the series has no such point.
std::optional<size_t> find_baseline(const Trend& trend, const History& history, const std::string& wanted) {
  std::vector<size_t> earlier = trend.known;
  std::erase(earlier, trend.points.size() - 1);
  if (earlier.empty()) return std::nullopt;
  if (wanted.empty()) return earlier.back();
  if (wanted == "best") return best_of(trend, earlier, *history.metric);
  const auto found = std::find_if(earlier.rbegin(), earlier.rend(),
                                  [&](size_t point) { return is_of(trend.points[point], wanted, history.folder); });
  return found == earlier.rend() ? std::nullopt : std::optional(*found);
}

std::vector<std::string> paths_of(const History& history, const HistoryPoint& point) {
  std::vector<std::string> paths;
  for (const std::string& path : point.paths) paths.push_back((history.folder / path).string());
  return paths;
}

bool is_name(const std::string& baseline) { return !baseline.empty() && baseline != "best"; }

bool holds_baseline(const Trend& trend, const History& history, const std::string& baseline) {
  return std::ranges::any_of(trend.points,
                             [&](const HistoryPoint& point) { return is_of(point, baseline, history.folder); });
}

// A baseline by name belongs to one key; series of other keys are not compared.
bool is_elsewhere(const Trend& trend, const History& history, const std::string& baseline) {
  return is_name(baseline) && std::ranges::none_of(history.trends, [&](const Trend& each) {
           return each.series == trend.series && holds_baseline(each, history, baseline);
         });
}

bool names_nothing(const History& history, const std::string& baseline) {
  return is_name(baseline) && std::ranges::none_of(history.trends, [&](const Trend& each) {
           return holds_baseline(each, history, baseline);
         });
}

std::string why_nothing_to_hold_against(const Trend& trend, const CompareOptions& options) {
  if (!trend.other_work.empty()) return "the newest result is " + trend.other_work;
  return options.baseline.empty() ? "the series has no earlier result"
                                  : "the baseline is the newest result itself, incomplete, or of different work";
}

// A gate without a baseline has no answer.
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
  CompareOptions pair = options;  // margins, tolerances and gates; the participants are known already
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

// Runs the audit of `tprimat compare` on two files of the folder.
WorkJudge judge_by_audit(const std::filesystem::path& folder, const AuditOptions& options) {
  return [folder, options](const IndexedFile& earlier, const IndexedFile& later) -> std::optional<std::string> {
    try {
      const Contender a = load_contender({earlier.path}, folder, "", options),
                      b = load_contender({later.path}, folder, "", options);
      for (const Finding& finding : audit_pair(a, b, options))
        if (forbids(finding) && finding.code != "same_measurement") return finding.sentence;
    } catch (const Error& error) {
      return error.problems().front().what;
    }
    return std::nullopt;
  };
}

// Audits the newest point of each series against the earlier points that it is compared with. If the audit finds an
// error, or the metric has different meanings on the two sides, the step has a reason instead of a verdict.
void audit_trends(std::vector<Trend>& trends, const std::filesystem::path& folder, const Metric& metric,
                  const AuditOptions& options) {
  parallel_for(trends.size(), [&](size_t i) {
    Trend& trend = trends[i];
    if (!trend.previous) return;
    audit_step(*trend.previous, trend, folder, metric, options);
    if (!trend.best) return;
    if (trend.best->earlier != trend.previous->earlier)
      audit_step(*trend.best, trend, folder, metric, options);
    else
      trend.best->verdict = trend.previous->verdict, trend.best->why = trend.previous->why;
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
  const auto any = [&](auto is_so) { return std::ranges::any_of(history.trends, is_so); };
  if (any([](const Trend& trend) { return trend.points.back().status != RunStatus::complete; }))
    return ExitStatus::work_failed;
  const bool withheld = any([](const Trend& trend) {
    return !trend.points.back().fault.empty() ||
           (trend.newest_is_known() && trend.previous && trend.previous->verdict == TrendVerdict::not_comparable);
  });
  return withheld ? ExitStatus::not_comparable : ExitStatus::done;
}

}  // namespace tprimat::results
