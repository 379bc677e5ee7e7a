#include "compare/compare_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/parallel_for.h"
#include "compare/contender.h"
#include "compare/gates.h"
#include "compare/time_to_train.h"
#include "compare/versions.h"
#include "spec/model_catalogue.h"
#include "spec/tsv_rows.h"
#include "text/choice.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

template <class T, class U>
bool lets_through(const std::vector<T>& wanted, const U& value) {
  return wanted.empty() || std::ranges::find(wanted, value) != wanted.end();
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// fold_name, but it keeps the character between two digits: "1.5B" and "1_5b" are not "15B".
std::string fold_but_figures(const std::string& name) {
  std::string folded;
  bool is_separated = false;
  for (const char c : name) {
    const std::string plain = fold_name(std::string_view(&c, 1));
    if (is_separated && !plain.empty() && !folded.empty() && is_digit(folded.back()) && is_digit(c)) folded += '.';
    is_separated = plain.empty();
    folded += plain;
  }
  return folded;
}

// "llama", "Llama-3.1-8B" and "meta-llama/Llama-3.1-8B" are one model.
std::string model_key(const std::string& name) {
  const auto known = find_model(name);
  return known ? known->name : fold_but_figures(name);
}

bool is_wanted_model(const std::string& name, const std::vector<std::string>& wanted) {
  return wanted.empty() ||
         std::ranges::any_of(wanted, [&](const std::string& each) { return model_key(each) == model_key(name); });
}

bool is_wanted(const RunResult& run, const CompareOptions& options) {
  return lets_through(options.platforms, run.platform) &&
         (options.frameworks.empty() || (run.framework && lets_through(options.frameworks, *run.framework))) &&
         is_wanted_model(run.model_info.name, options.models) &&
         lets_through(options.strategies, run.parallelism_config.strategy_name.value_or(""));
}

// The name that all members share, else the catalogue's.
std::string model_title(const std::vector<LoadedRun>& members) {
  const std::string& name = members.front().result.model_info.name;
  if (name.empty()) return "unknown model";
  const bool is_shared =
      std::ranges::all_of(members, [&](const LoadedRun& each) { return each.result.model_info.name == name; });
  const auto known = is_shared ? std::nullopt : find_model(name);
  return known ? known->full_name : name;
}

std::vector<ModelGroup> group_by_model(std::vector<LoadedRun> runs) {
  std::map<std::string, std::vector<LoadedRun>> by_model;
  for (LoadedRun& run : runs) by_model[model_key(run.result.model_info.name)].push_back(std::move(run));
  std::vector<ModelGroup> groups;
  for (auto& [key, members] : by_model) {
    std::string title = model_title(members);
    groups.push_back({std::move(title), gather_contenders(std::move(members)), {}});
  }
  std::ranges::sort(groups, [](const ModelGroup& a, const ModelGroup& b) {
    return std::pair(a.model == "unknown model", a.model) < std::pair(b.model == "unknown model", b.model);
  });
  return groups;
}

void sort_contenders(std::vector<Contender>& contenders, const std::string& key) {
  if (key.empty()) return;
  const Metric* metric = find_metric(key);
  const double sign = metric->better == Direction::higher_is_better ? -1 : 1;
  std::vector<std::pair<double, size_t>> ranks;
  for (size_t i = 0; i < contenders.size(); ++i) {
    const auto figure = read_figure(contenders[i], *metric);
    ranks.emplace_back(figure ? sign * figure->value : std::numeric_limits<double>::infinity(), i);
  }
  std::ranges::sort(ranks);  // ties keep their order
  std::vector<Contender> sorted;
  for (const auto& [rank, index] : ranks) sorted.push_back(std::move(contenders[index]));
  contenders = std::move(sorted);
}

// A folder holds a participant if all of its files lie there.
bool lies_within(const Contender& contender, const std::filesystem::path& folder) {
  return std::ranges::all_of(contender.runs, [&](const LoadedRun& each) {
    std::error_code ignored;
    const std::filesystem::path parent = std::filesystem::path(each.path).parent_path();
    return std::filesystem::equivalent(parent.empty() ? "." : parent, folder, ignored);
  });
}

bool is_baseline(const Contender& contender, const std::string& wanted) {
  const RunResult& run = contender.first();
  if (is_baseline_folder(wanted)) return lies_within(contender, wanted);
  if (run.platform && parse_word<Platform>(wanted) == run.platform) return true;
  if (run.framework && parse_word<Framework>(wanted) == run.framework) return true;
  if (contender.label == wanted || version_name(run) == wanted) return true;
  return std::ranges::any_of(contender.runs, [&](const LoadedRun& each) {
    std::error_code ignored;
    const std::filesystem::path path(each.path);
    return each.path == wanted || path.filename() == wanted || path.stem() == wanted ||
           std::filesystem::equivalent(path, wanted, ignored);
  });
}

// A text that looks like a path was meant as one, even if it does not exist.
[[noreturn]] void throw_no_baseline(const std::string& wanted) {
  const bool is_path = wanted.find('/') != std::string::npos || wanted.ends_with(".json");
  std::error_code ignored;
  if (is_path && !std::filesystem::exists(wanted, ignored))
    throw Error(Problem{fmt::format("\"{}\" does not exist", wanted), "--baseline",
                        "name a result file, or the folder that holds the baseline's results"});
  if (is_baseline_folder(wanted))
    throw Error(Problem{fmt::format("\"{}\" holds none of the results", wanted), "--baseline",
                        "name a folder with results of this model that pass the filters"});
  throw Error(Problem{fmt::format("\"{}\" matches no result", wanted), "--baseline",
                      "name a result file, a folder of results, a platform, a framework or a label"});
}

// The baseline comes first, so that it is A. A folder may hold at most one participant of each model.
bool move_baseline_first(ModelGroup& group, const std::string& wanted) {
  const auto is_wanted_one = [&](const Contender& contender) { return is_baseline(contender, wanted); };
  if (is_baseline_folder(wanted) && std::ranges::count_if(group.contenders, is_wanted_one) > 1)
    throw Error(Problem{fmt::format("\"{}\" holds several participants of {}", wanted, group.model), "--baseline",
                        "name a file of the intended baseline, or filter with --platform, --framework or --strategy"});
  const auto found = std::ranges::find_if(group.contenders,
                                          [&](const Contender& contender) { return is_baseline(contender, wanted); });
  if (found == group.contenders.end()) return false;
  std::rotate(group.contenders.begin(), found, found + 1);
  return true;
}

// The number of pairs grows with the square: beyond this, they are unreadable and take minutes.
constexpr size_t k_max_participants = 100;

Margins margins_of(const CompareOptions& options) { return {options.smallest_effect, options.assumed_run_spread}; }

struct PairSides {
  size_t reference = 0, subject = 0;  // places in the group
};

Pair compare_pair(const ModelGroup& group, const std::vector<RateEvidence>& evidence, const CompareOptions& options,
                  const PairSides& sides) {
  const auto [reference, subject] = sides;
  const Contender &before = group.contenders[reference], &after = group.contenders[subject];
  Pair pair;
  pair.subject = subject;
  pair.reference = reference;
  pair.findings = audit_pair(before, after, options.audit);
  pair.fairness = judge_fairness(pair.findings, before, after);
  pair.comparable = pair.fairness != Fairness::not_comparable;
  pair.versions = !find_versions(before.first(), after.first()).empty();
  judge_pair(pair, evidence[reference], evidence[subject], margins_of(options));
  pair.time_to_train = compare_times(before, after);
  if (!pair.ratio && pair.time_to_train) pair.verdict = judge(pair.time_to_train->ratio, options.smallest_effect);
  for (const Metric& metric : metrics()) {
    const auto low = read_figure(before, metric), high = read_figure(after, metric);
    if (metric.better == Direction::neither || !low || !high || low->value == 0 || high->value == 0 ||
        why_not_compared(metric, pair.findings, before, after))
      continue;
    pair.ratios[std::string(metric.key)] = high->value / low->value;
  }
  return pair;
}

// Best first, so that it is A.
void sort_many(ModelGroup& group, const std::string& sort) {
  group.against_best = true;
  sort_contenders(group.contenders, sort.empty() ? std::string(metrics().front().key) : sort);
}

void compare_with_first(ModelGroup& group, const std::vector<RateEvidence>& evidence, const CompareOptions& options) {
  group.pairs.resize(group.contenders.size() - 1);
  parallel_for(group.pairs.size(), [&](size_t i) {
    group.pairs[i] = compare_pair(group, evidence, options, {0, i + 1});
  });
}

void compare_group(ModelGroup& group, const CompareOptions& options) {
  name_contenders(group.contenders);
  std::vector<RateEvidence> evidence;
  for (Contender& contender : group.contenders) {
    contender.findings = audit_contender(contender, options.audit);
    evidence.push_back(gather_evidence(contender));
  }
  if (group.has_baseline || group.against_best) return compare_with_first(group, evidence, options);
  for (size_t reference = 0; reference < group.contenders.size(); ++reference) {
    for (size_t subject = reference + 1; subject < group.contenders.size(); ++subject)
      group.pairs.push_back(compare_pair(group, evidence, options, {reference, subject}));
  }
}

void check_options(const CompareOptions& options) {
  if (options.sort.empty() || find_metric(options.sort)) return;
  throw Error(Problem{fmt::format("unknown metric \"{}\"", options.sort), "--sort", suggest_metric(options.sort)});
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

Estimate inverse(const Estimate& ratio) {
  Estimate result{1 / ratio.value, {}, {}};
  if (ratio.low && ratio.high && *ratio.low > 0) result.low = 1 / *ratio.high, result.high = 1 / *ratio.low;
  return result;
}

std::string state_interval(const Estimate& ratio) {
  if (!ratio.low || !ratio.high) return "no interval";
  return fmt::format("95 % interval {} to {}", format_significant(*ratio.low, 4), format_significant(*ratio.high, 4));
}

std::string state_ratio(const ModelGroup& group, const Pair& pair, double smallest_effect) {
  // Without a winner the sentence follows the table: subject against reference.
  const bool has_winner = pair.verdict == Verdict::faster || pair.verdict == Verdict::slower;
  const bool subject_leads = !has_winner || pair.ratio->value >= 1;
  const std::string& first = group.contenders[subject_leads ? pair.subject : pair.reference].label;
  const std::string& second = group.contenders[subject_leads ? pair.reference : pair.subject].label;
  const double ratio = subject_leads ? pair.ratio->value : 1 / pair.ratio->value;
  const std::string interval = state_interval(subject_leads ? *pair.ratio : inverse(*pair.ratio));
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

// Repetitions of different work have no meaningful mean, even without another participant.
bool is_mixture(const Contender& contender) {
  return std::ranges::any_of(contender.findings, [](const Finding& finding) {
    return finding.code == k_runs_differ && finding.severity == Severity::error;
  });
}

void confirm_in_cycles(Comparison& comparison, const CompareOptions& options) {
  for (ModelGroup& group : comparison.groups)
    for (Pair& pair : group.pairs)
      if (pair.comparable || comparison.force)
        confirm_in_cycles(pair, group.contenders[pair.reference], group.contenders[pair.subject], margins_of(options));
}

}  // namespace

Comparison compare_runs(LoadedRuns loaded, const CompareOptions& options) {
  check_options(options);
  Comparison comparison{group_by_model(select_runs(std::move(loaded.runs), options)),
                        std::move(loaded.skipped),
                        options.smallest_effect,
                        options.force,
                        {}};
  bool baseline_found = options.baseline.empty();
  for (ModelGroup& group : comparison.groups) {
    sort_contenders(group.contenders, options.sort);
    name_contenders(group.contenders);
    const bool has_baseline = !options.baseline.empty() && move_baseline_first(group, options.baseline);
    baseline_found = baseline_found || has_baseline;
    group.has_baseline = has_baseline;
    if (!has_baseline && group.contenders.size() > k_max_participants) sort_many(group, options.sort);
    compare_group(group, options);
  }
  if (!baseline_found) throw_no_baseline(options.baseline);
  settle_verdicts(comparison);
  confirm_in_cycles(comparison, options);
  if (!options.gates.empty()) comparison.gates = judge_gates(comparison, options.gates);
  return comparison;
}

bool is_baseline_folder(const std::string& baseline) {
  std::error_code ignored;
  return !parse_word<Platform>(baseline) && !parse_word<Framework>(baseline) &&
         std::filesystem::is_directory(baseline, ignored);
}

ExitStatus comparison_status(const Comparison& comparison) {
  if (!comparison.gates.empty()) return gates_status(comparison.gates);
  bool invalid = false;
  for (const ModelGroup& group : comparison.groups) {
    for (const Pair& pair : group.pairs)
      if (!pair.comparable) return ExitStatus::not_comparable;
    if (std::ranges::any_of(group.contenders, is_mixture)) return ExitStatus::not_comparable;
    for (const Contender& contender : group.contenders)
      for (const LoadedRun& run : contender.runs) invalid = invalid || run.result.status != RunStatus::complete;
  }
  return invalid ? ExitStatus::work_failed : ExitStatus::done;
}

std::string headline(const Comparison& comparison, const ModelGroup& group, const Pair& pair) {
  const std::string &a = group.contenders[pair.subject].label, &b = group.contenders[pair.reference].label;
  const std::string statement = (pair.ratio ? state_ratio(group, pair, comparison.smallest_effect)
                                            : fmt::format("{} against {}: {}", a, b, pair.explanation)) +
                                state_versions(group, pair);
  if (pair.comparable) return statement;
  if (comparison.force) return fmt::format("Forced, not comparable: {}. But {}", statement, reasons(group, pair));
  std::string rates;
  if (pair.ratio)
    rates = fmt::format(". Raw ratio, no verdict: tokens/s per device {} / {} = {} ({})",
                        group.contenders[pair.subject].letter, group.contenders[pair.reference].letter,
                        format_significant(pair.ratio->value, 4), state_interval(*pair.ratio));
  return fmt::format("{} and {} are not comparable: {}{}", b, a, reasons(group, pair), rates);
}

}  // namespace tprimat::results
