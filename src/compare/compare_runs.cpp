#include "compare/compare_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "compare/audit.h"
#include "compare/contender.h"
#include "compare/cycles.h"
#include "compare/settle.h"
#include "text/format.h"

namespace tprimat {
namespace {

template <class T, class U>
bool lets_through(const std::vector<T>& wanted, const U& value) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

bool is_wanted(const RunResult& run, const CompareOptions& options) {
  return lets_through(options.platforms, run.platform) &&
         (options.frameworks.empty() || (run.framework && lets_through(options.frameworks, *run.framework))) &&
         lets_through(options.models, run.model_info.name) &&
         lets_through(options.strategies, run.parallelism_config.strategy_name.value_or(""));
}

std::vector<ModelGroup> group_by_model(std::vector<LoadedRun> runs) {
  std::map<std::string, std::vector<LoadedRun>> by_model;
  for (LoadedRun& run : runs) by_model[run.result.model_info.name].push_back(std::move(run));
  std::vector<ModelGroup> groups;
  for (auto& [model, members] : by_model)
    groups.push_back({model.empty() ? "unknown model" : model, gather_contenders(std::move(members)), {}});
  return groups;
}

void sort_contenders(std::vector<Contender>& contenders, const std::string& key) {
  if (key.empty()) return;
  const Metric* metric = find_metric(key);
  const double sign = metric->better == Direction::higher_is_better ? -1 : 1;
  const auto rank = [&](const Contender& contender) {
    const auto figure = read_figure(contender, *metric);
    return figure ? sign * figure->value : std::numeric_limits<double>::infinity();
  };
  std::stable_sort(contenders.begin(), contenders.end(),
                   [&](const Contender& a, const Contender& b) { return rank(a) < rank(b); });
}

bool is_baseline(const Contender& contender, const std::string& wanted) {
  const RunResult& run = contender.first();
  if (run.platform && parse_enum<Platform>(wanted) == run.platform) return true;
  if (run.framework && parse_enum<Framework>(wanted) == run.framework) return true;
  if (contender.label == wanted) return true;
  return std::any_of(contender.runs.begin(), contender.runs.end(), [&](const LoadedRun& each) {
    std::error_code ignored;
    const std::filesystem::path path(each.path);
    return path.filename() == wanted || path.stem() == wanted || std::filesystem::equivalent(path, wanted, ignored);
  });
}

// The baseline comes first, so that it is A.
bool move_baseline_first(ModelGroup& group, const std::string& wanted) {
  const auto found = std::find_if(group.contenders.begin(), group.contenders.end(),
                                  [&](const Contender& contender) { return is_baseline(contender, wanted); });
  if (found == group.contenders.end()) return false;
  std::rotate(group.contenders.begin(), found, found + 1);
  return true;
}

// Not compared where their meanings differ: see the rules flop_formula, peak, memory_meaning and batch.
bool is_excluded(const Metric& metric, const std::vector<Finding>& findings) {
  const auto found = [&](std::string_view code) {
    return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) { return finding.code == code; });
  };
  if (metric.key == "mfu") return found("flop_formula") || found("peak");
  if (metric.key == "tflops_per_gpu") return found("flop_formula");
  if (metric.key.ends_with("_step_time")) return found("batch") || found("sequence_length");
  return metric.format == MetricFormat::gigabytes && found("memory_meaning");
}

Pair compare_pair(const ModelGroup& group, const std::vector<RateEvidence>& evidence, const Margins& margins,
                  std::pair<size_t, size_t> sides) {
  const auto [reference, subject] = sides;
  const Contender &before = group.contenders[reference], &after = group.contenders[subject];
  Pair pair;
  pair.subject = subject;
  pair.reference = reference;
  pair.findings = audit_pair(before, after);
  pair.comparable = !has_error(pair.findings) && !has_error(before.findings) && !has_error(after.findings);
  judge_pair(pair, evidence[reference], evidence[subject], margins);
  for (const Metric& metric : metrics()) {
    const auto low = read_figure(before, metric), high = read_figure(after, metric);
    if (metric.better == Direction::neither || !low || !high || low->value == 0 || is_excluded(metric, pair.findings))
      continue;
    pair.ratios[std::string(metric.key)] = high->value / low->value;
  }
  return pair;
}

// Pairs grow with the square: beyond this many nobody reads them, and they take minutes.
void check_group_size(const ModelGroup& group) {
  constexpr size_t k_most = 100;
  if (group.contenders.size() <= k_most) return;
  throw Error(Problem{fmt::format("{} participants are too many to compare each with each; {} is the limit",
                                  group.contenders.size(), k_most),
                      group.model, "name one with --baseline, or give fewer files"});
}

void compare_group(ModelGroup& group, bool only_against_first, const Margins& margins) {
  name_contenders(group.contenders);
  std::vector<RateEvidence> evidence;
  for (Contender& contender : group.contenders) {
    contender.findings = audit_contender(contender);
    evidence.push_back(gather_evidence(contender));
  }
  for (size_t reference = 0; reference < group.contenders.size(); ++reference) {
    for (size_t subject = reference + 1; subject < group.contenders.size(); ++subject)
      group.pairs.push_back(compare_pair(group, evidence, margins, {reference, subject}));
    if (only_against_first) return;
  }
}

void check_options(const CompareOptions& options) {
  if (options.sort.empty() || find_metric(options.sort)) return;
  std::vector<std::string> keys;
  for (const Metric& metric : metrics()) keys.emplace_back(metric.key);
  const std::string near = nearest_word(options.sort, keys);
  throw Error(Problem{
      fmt::format("no metric is called \"{}\"", options.sort), "--sort",
      near.empty() ? fmt::format("choose one of {}", fmt::join(keys, ", ")) : fmt::format("did you mean {}?", near)});
}

std::vector<LoadedRun> select_runs(std::vector<LoadedRun> runs, const CompareOptions& options) {
  const size_t total = runs.size();
  std::erase_if(runs, [&](const LoadedRun& run) { return !is_wanted(run.result, options); });
  if (runs.empty())
    throw Error(
        Problem{total == 0 ? "no results were found" : fmt::format("none of {} results passes the filters", total), "",
                total == 0 ? "give result files, or run `tprimat run` first" : "drop a filter, or check its spelling"});
  return runs;
}

std::string reasons(const ModelGroup& group, const Pair& pair) {
  std::string text;
  const auto add = [&](const std::vector<Finding>& findings, const std::string& whose) {
    for (const Finding& finding : findings)
      if (finding.severity == Severity::error) text += (text.empty() ? "" : "; ") + whose + finding.sentence;
  };
  add(pair.findings, "");
  for (const size_t side : {pair.reference, pair.subject})
    add(group.contenders[side].findings, group.contenders[side].letter + ": ");
  return text;
}

std::string state_ratio(const ModelGroup& group, const Pair& pair, double smallest_effect) {
  const bool subject_leads = pair.ratio->value >= 1;
  const std::string& first = group.contenders[subject_leads ? pair.subject : pair.reference].label;
  const std::string& second = group.contenders[subject_leads ? pair.reference : pair.subject].label;
  const double ratio = subject_leads ? pair.ratio->value : 1 / pair.ratio->value;
  std::string interval = "no interval";
  if (pair.ratio->low && pair.ratio->high)
    interval = fmt::format("95 % interval {} to {}",
                           format_significant(subject_leads ? *pair.ratio->low : 1 / *pair.ratio->high, 4),
                           format_significant(subject_leads ? *pair.ratio->high : 1 / *pair.ratio->low, 4));
  switch (pair.verdict) {
    case Verdict::same:
      return fmt::format("{} and {} are equally fast within {} ({})", first, second, format_percent(smallest_effect, 0),
                         interval);
    case Verdict::inconclusive:
      return fmt::format("{} against {} is inconclusive: {} ({})", first, second, format_significant(ratio, 4),
                         interval);
    default: return fmt::format("{} is {}x faster than {} ({})", first, format_significant(ratio, 4), second, interval);
  }
}

}  // namespace

Comparison compare_runs(LoadedRuns loaded, const CompareOptions& options) {
  check_options(options);
  Comparison comparison{group_by_model(select_runs(std::move(loaded.runs), options)), std::move(loaded.skipped),
                        options.smallest_effect, options.force};
  const Margins margins{options.smallest_effect, options.assumed_run_spread};
  bool baseline_found = options.baseline.empty();
  for (ModelGroup& group : comparison.groups) {
    sort_contenders(group.contenders, options.sort);
    name_contenders(group.contenders);
    const bool has_baseline = !options.baseline.empty() && move_baseline_first(group, options.baseline);
    baseline_found = baseline_found || has_baseline;
    if (options.baseline.empty()) check_group_size(group);
    compare_group(group, has_baseline, margins);
  }
  if (!baseline_found)
    throw Error(Problem{fmt::format("\"{}\" is none of the results", options.baseline), "--baseline",
                        "name a result file, a platform, a framework or a label"});
  settle_verdicts(comparison);
  for (ModelGroup& group : comparison.groups)
    for (Pair& pair : group.pairs)
      confirm_in_cycles(pair, group.contenders[pair.reference], group.contenders[pair.subject], margins);
  return comparison;
}

ExitStatus comparison_status(const Comparison& comparison) {
  bool invalid = false;
  for (const ModelGroup& group : comparison.groups) {
    for (const Pair& pair : group.pairs)
      if (!pair.comparable) return ExitStatus::not_comparable;
    for (const Contender& contender : group.contenders)
      for (const LoadedRun& run : contender.runs) invalid = invalid || run.result.status != RunStatus::complete;
  }
  return invalid ? ExitStatus::work_failed : ExitStatus::done;
}

std::string headline(const Comparison& comparison, const ModelGroup& group, const Pair& pair) {
  const std::string &a = group.contenders[pair.subject].label, &b = group.contenders[pair.reference].label;
  const std::string statement = pair.ratio ? state_ratio(group, pair, comparison.smallest_effect)
                                           : fmt::format("{} against {}: {}", a, b, pair.explanation);
  if (pair.comparable) return statement;
  if (comparison.force) return fmt::format("Forced, not comparable: {}. But {}", statement, reasons(group, pair));
  return fmt::format("{} and {} are not comparable: {}", b, a, reasons(group, pair));
}

}  // namespace tprimat
