#include "report/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <unordered_map>

#include "compare/compare_runs.h"
#include "compare/contender.h"
#include "compare/gates.h"
#include "report/figures.h"
#include "result/gpu_cores.h"

namespace tprimat::results {
namespace {

Tone tone_of(const Pair& pair) {
  if (!pair.comparable) return Tone::bad;
  return pair.verdict == Verdict::inconclusive ? Tone::doubtful : Tone::good;
}

// Beyond this many pairs tables replace sentences.
constexpr size_t k_max_pairs = 6;

// Longer tables are cut; CSV and JSON have all rows.
constexpr size_t k_max_rows = 100;

// At most k_max_rows of a table's columns or rows.
template <class T>
std::span<const T> first_rows(const std::vector<T>& all) {
  return std::span(all).first(std::min(all.size(), k_max_rows));
}

DocumentPart list_headlines(const Comparison& comparison, const ModelGroup& group) {
  std::vector<Line> lines;
  if (group.against_best)
    lines.push_back(
        {fmt::format("{} runs are too many to compare every pair: each is compared with the best, {}. Tables "
                     "show the first {}; --csv and --json list all.",
                     group.contenders.size(), group.contenders.front().label, k_max_rows),
         Tone::doubtful, "choose another with --baseline"});
  if (group.pairs.size() > k_max_pairs) {
    lines.push_back({count_verdicts(group) + ".", Tone::doubtful,
                     group.against_best ? "" : "add --baseline RUN for one sentence per run"});
    return make_lines(std::move(lines));
  }
  for (const Pair& pair : group.pairs) {
    lines.push_back({headline(comparison, group, pair) + ".", tone_of(pair), ""});
    if (pair.causes) lines.push_back({pair.causes->sentence, Tone::plain, ""});
    const bool is_told = pair.comparable && !pair.ratio;
    if (pair.time_to_train && !is_told)
      lines.push_back({capitalized(pair.time_to_train->sentence) + ".", Tone::plain, ""});
  }
  if (group.pairs.empty())
    lines.push_back(
        {"This model has only one participant, so there is nothing to compare.", Tone::doubtful,
         comparison.groups.size() > 1
             ? "if another result here is the same model under another name, extract both with one --model NAME"
             : ""});
  return make_lines(std::move(lines));
}

constexpr std::string_view k_gpu_cores = "GPU cores";

// The label says two of them; the units of the device stand with what a run takes of it.
bool is_elsewhere(const RunFact& fact) {
  return fact.name == "platform" || fact.name == "framework" || fact.name == k_gpu_cores;
}

DocumentPart tabulate_runs(const ModelGroup& group) {
  TextTable table{{"", "run"}, {}, {}};
  for (const RunFact& fact : list_facts(group.contenders.front()))
    if (!is_elsewhere(fact)) table.header.emplace_back(fact.name);
  for (const Contender& contender : first_rows(group.contenders)) {
    std::vector<std::string> row{contender.letter, contender.label};
    for (const RunFact& fact : list_facts(contender))
      if (!is_elsewhere(fact)) row.push_back(shorten(fact.text(), 34));
    table.rows.push_back(std::move(row));
  }
  return make_table(std::move(table));
}

// Facts of some kinds of training only: nothing where no run is of that kind.
std::optional<DocumentPart> tabulate_facts(const ModelGroup& group, std::vector<RunFact> (*list)(const Contender&)) {
  TextTable table{{""}, {}, {}};
  for (const Contender& contender : first_rows(group.contenders)) {
    const std::vector<RunFact> facts = list(contender);
    if (facts.empty()) continue;
    std::vector<std::string> row{contender.letter};
    for (const RunFact& fact : facts) {
      if (table.rows.empty()) table.header.emplace_back(fact.name);
      row.push_back(shorten(printable(fact.text()), 34));
    }
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty()) return std::nullopt;
  return make_table(std::move(table));
}

std::string format_bound(const Metric& metric, const std::optional<Estimate>& figure,
                         std::optional<double> Estimate::*bound) {
  return figure && (*figure).*bound ? format_figure(metric, *((*figure).*bound)) : "-";
}

// With more than a few participants, only the headline figure shows its interval, in rows of its own.
void add_figure(TextTable& table, std::span<const Contender> contenders, const Metric& metric, bool few) {
  std::vector<std::string> row{std::string(metric.title)}, lows{"  95 % interval, from"}, highs{"  to"};
  for (const Contender& contender : contenders) {
    const auto figure = read_figure(contender, metric);
    row.push_back(few ? format_estimate(metric, figure) : figure ? format_figure(metric, figure->value) : "-");
    lows.push_back(format_bound(metric, figure, &Estimate::low));
    highs.push_back(format_bound(metric, figure, &Estimate::high));
  }
  table.rows.push_back(std::move(row));
  if (few || &metric != &metrics().front()) return;
  table.rows.push_back(std::move(lows));
  table.rows.push_back(std::move(highs));
}

// "304 CUs"; nothing where no participant's is known.
void add_gpu_cores(TextTable& table, std::span<const Contender> contenders) {
  std::vector<std::string> row{std::string(k_gpu_cores)};
  bool any = false;
  for (const Contender& contender : contenders) {
    const auto cores = find_gpu_cores(contender.first());
    any = any || cores;
    row.push_back(cores ? cores->short_text() : "-");
  }
  if (any) table.rows.push_back(std::move(row));
}

std::optional<DocumentPart> tabulate_figures(const ModelGroup& group, MetricTable which) {
  constexpr size_t k_max_intervals = 4;
  constexpr size_t k_max_columns = 30;
  const std::span<const Contender> shown =
      std::span(group.contenders).first(std::min(group.contenders.size(), k_max_columns));
  TextTable table{{"figure"}, {}, {}};
  for (const Contender& contender : shown) {
    table.right.push_back(table.header.size());
    table.header.push_back(contender.letter);
  }
  if (which == MetricTable::resources) add_gpu_cores(table, shown);
  for (const Metric* metric : present_metrics(group))
    if (metric->table == which) add_figure(table, shown, *metric, group.contenders.size() <= k_max_intervals);
  if (table.rows.empty()) return std::nullopt;
  return make_table(std::move(table));
}

void add_figures(const ModelGroup& group, Document& document) {
  constexpr std::pair<MetricTable, std::string_view> k_tables[] = {{MetricTable::speed, k_speed_heading},
                                                                   {MetricTable::resources, k_resources_heading}};
  for (const auto& [which, heading] : k_tables)
    if (auto table = tabulate_figures(group, which)) {
      document.push_back(make_heading(std::string(heading)));
      document.push_back(std::move(*table));
    }
}

// Nothing where no published run is of the kind of any participant.
std::optional<DocumentPart> list_standings(const ModelGroup& group) {
  constexpr size_t k_max_lines = 12;
  std::vector<Line> lines;
  for (const Contender& contender : first_rows(group.contenders))
    if (const auto standing = find_standing(contender); standing && lines.size() < k_max_lines)
      lines.push_back(
          {fmt::format("{}: {}", contender.letter, planner::describe_standing(*standing)), Tone::plain, ""});
  if (lines.empty()) return std::nullopt;
  return make_lines(std::move(lines));
}

std::string format_ratio(double ratio) { return format_significant(ratio, 4); }

std::vector<std::string> describe_pair(const Comparison& comparison, const ModelGroup& group, const Pair& pair) {
  std::string interval = "-";
  if (pair.ratio && pair.ratio->low && pair.ratio->high)
    interval = fmt::format("{} to {}", format_ratio(*pair.ratio->low), format_ratio(*pair.ratio->high));
  const std::string ratio = pair.ratio ? format_ratio(pair.ratio->value) : "-", fairness(enum_name(pair.fairness));
  if (!shows_verdict(comparison, pair))
    return {pair_name(group, pair), ratio, interval, "withheld", fairness, "see the audit"};
  return {pair_name(group, pair),
          ratio,
          interval,
          std::string(enum_name(pair.verdict)) + (pair.comparable ? "" : ", forced"),
          fairness,
          pair.explanation};
}

DocumentPart tabulate_pairs(const Comparison& comparison, const ModelGroup& group) {
  TextTable table{{"pair", "tokens/s per device", "95 % interval", "verdict", "fair", "because"}, {}, {1}};
  for (const Pair& pair : first_rows(group.pairs)) table.rows.push_back(describe_pair(comparison, group, pair));
  return make_table(std::move(table));
}

// Ratios of the other metrics, for comparable pairs. A metric that restates another would repeat its ratio.
std::optional<DocumentPart> tabulate_ratios(const Comparison& comparison, const ModelGroup& group) {
  TextTable table{{"ratio"}, {}, {}};
  std::vector<const Pair*> shown;
  for (const Pair& pair : group.pairs)
    if (shows_verdict(comparison, pair)) shown.push_back(&pair);
  if (shown.size() > k_max_pairs) return std::nullopt;
  for (const Pair* pair : shown)
    table.right.push_back(table.header.size()), table.header.push_back(pair_name(group, *pair));
  for (const Metric& metric : metrics()) {
    if (!metric.restates.empty()) continue;
    std::vector<std::string> row{fmt::format("{} ({})", metric.title, enum_name(metric.better))};
    bool any = false;
    for (const Pair* pair : shown) {
      const auto found = pair->ratios.find(std::string(metric.key));
      any = any || found != pair->ratios.end();
      row.push_back(found == pair->ratios.end() ? "-" : format_ratio(found->second));
    }
    if (any) table.rows.push_back(std::move(row));
  }
  if (table.rows.empty()) return std::nullopt;
  return make_table(std::move(table));
}

constexpr size_t k_max_named = 50;  // participants of one finding

class Remarks {
 public:
  void add(const Finding& finding, const std::string& whose) {
    const auto [place, is_new] = places_.emplace(finding.code + '\n' + finding.sentence, all_.size());
    if (is_new) all_.push_back({finding, {}});
    std::vector<std::string>& names = all_[place->second].whose;
    if (names.empty() || names.back() != whose) names.push_back(whose);
  }
  std::vector<Remark> worst_first() && {
    std::ranges::stable_sort(all_,
                             [](const Remark& a, const Remark& b) { return a.finding.severity > b.finding.severity; });
    return std::move(all_);
  }

 private:
  std::vector<Remark> all_;
  std::unordered_map<std::string, size_t> places_;
};

// The code of an error, under which docs/compare.md explains it.
std::string code_of(const Finding& finding) {
  return finding.severity == Severity::error ? fmt::format(" [{}]", finding.code) : "";
}

Tone tone_of(Severity severity) {
  return severity == Severity::error ? Tone::bad : severity == Severity::warning ? Tone::doubtful : Tone::plain;
}

DocumentPart list_findings(const ModelGroup& group) {
  std::vector<Line> lines;
  const std::vector<Remark> remarks = gather_findings(group, pair_name);
  for (const Remark& remark : first_rows(remarks)) {
    const Finding& finding = remark.finding;
    lines.push_back({fmt::format("{} {}{}: {}", enum_name(finding.severity), remark.list_whose(k_max_named),
                                 code_of(finding), finding.sentence),
                     tone_of(finding.severity), finding.remedy});
  }
  if (remarks.size() > k_max_rows)
    lines.push_back(
        {fmt::format("and {} more findings: --json lists all", remarks.size() - k_max_rows), Tone::plain, ""});
  if (lines.empty()) lines.push_back({"nothing found", Tone::good, ""});
  return make_lines(std::move(lines));
}

std::optional<DocumentPart> list_file_notes(const ModelGroup& group) {
  Remarks remarks;
  for (const Contender& contender : group.contenders)
    for (const LoadedRun& run : contender.runs)
      for (const std::string& warning : run.result.warnings)
        remarks.add({"", Severity::note, warning, ""}, contender.letter);
  const std::vector<Remark> all = std::move(remarks).worst_first();
  if (all.empty()) return std::nullopt;
  std::vector<Line> lines;
  for (const Remark& remark : first_rows(all))
    lines.push_back({remark.list_whose(k_max_named) + ": " + remark.finding.sentence, Tone::plain, ""});
  return make_lines(std::move(lines));
}

DocumentPart list_files(const ModelGroup& group) {
  std::vector<Line> lines;
  size_t files = 0;
  for (const Contender& contender : group.contenders)
    for (const LoadedRun& run : contender.runs)
      if (files++ < k_max_rows) lines.push_back({contender.letter + ": " + run.path, Tone::plain, ""});
  if (files > k_max_rows) lines.push_back({fmt::format("and {} more files", files - k_max_rows), Tone::plain, ""});
  return make_lines(std::move(lines));
}

void add_group(const Comparison& comparison, const ModelGroup& group, Document& document) {
  document.push_back(make_title(group.model));
  document.push_back(list_headlines(comparison, group));
  document.push_back(tabulate_runs(group));
  for (const auto list : {list_target_facts, list_expert_facts})
    if (const auto table = tabulate_facts(group, list)) document.push_back(*table);
  add_figures(group, document);
  if (const auto standings = list_standings(group)) document.push_back(*standings);
  if (!group.pairs.empty()) {
    document.push_back(make_heading("Pairs"));
    document.push_back(tabulate_pairs(comparison, group));
    if (const auto ratios = tabulate_ratios(comparison, group)) document.push_back(*ratios);
  }
  document.push_back(make_heading("Audit"));
  document.push_back(list_findings(group));
  if (const auto notes = list_file_notes(group)) {
    document.push_back(make_heading("Notes on the files"));
    document.push_back(*notes);
  }
  document.push_back(make_heading("Files"));
  document.push_back(list_files(group));
}

Tone tone_of(GateOutcome outcome) {
  return outcome == GateOutcome::passed         ? Tone::good
         : outcome == GateOutcome::inconclusive ? Tone::doubtful
                                                : Tone::bad;
}

}  // namespace

std::string capitalized(std::string sentence) {
  if (!sentence.empty())
    sentence.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence.front())));
  return sentence;
}

std::string Remark::list_whose(size_t max_named) const {
  const std::span<const std::string> named = std::span(whose).first(std::min(whose.size(), max_named));
  const std::string text = join(named, ", ");
  return named.size() < whose.size() ? text + fmt::format(" and {} more", whose.size() - named.size()) : text;
}

std::vector<Remark> gather_findings(const ModelGroup& group, std::string (*name_pair)(const ModelGroup&, const Pair&)) {
  Remarks all;
  for (const Pair& pair : group.pairs)
    for (const Finding& finding : pair.findings) all.add(finding, name_pair(group, pair));
  for (const Contender& contender : group.contenders)
    for (const Finding& finding : contender.findings) all.add(finding, contender.letter);
  return std::move(all).worst_first();
}

void add_gates(Document& document, const std::vector<GateResult>& results) {
  if (results.empty()) return;
  std::vector<Line> lines;
  for (const GateResult& result : results) lines.push_back({describe_gate(result) + ".", tone_of(result.outcome), ""});
  document.push_back(make_heading("Gates"));
  document.push_back(make_lines(std::move(lines)));
}

void make_printable(Document& document) {
  for (DocumentPart& part : document) {
    part.text = printable(part.text);
    for (Line& line : part.lines) line.text = printable(line.text), line.aside = printable(line.aside);
    for (std::string& cell : part.table.header) cell = printable(cell);
    for (auto& row : part.table.rows)
      for (std::string& cell : row) cell = printable(cell);
  }
}

Document build_document(const Comparison& comparison) {
  Document document;
  for (const ModelGroup& group : comparison.groups) add_group(comparison, group, document);
  if (!comparison.skipped.empty()) {
    document.push_back(make_heading("Skipped files"));
    std::vector<Line> lines;
    for (const SkippedFile& file : comparison.skipped)
      lines.push_back({file.path + ": " + file.reason, Tone::doubtful, ""});
    document.push_back(make_lines(std::move(lines)));
  }
  add_gates(document, comparison.gates);
  document.push_back(make_lines(
      {{fmt::format(
            "Figures cover the steady steps. [low to high] is the 95 % interval: the noise within a single run, or "
            "the spread between several. Verdicts use tokens/s per device: an interval entirely beyond {0} is "
            "faster or slower, entirely within {0} is the same. GB is 1e9 bytes.",
            format_percent(comparison.smallest_effect, 0)),
        Tone::faint, ""}}));
  make_printable(document);
  return document;
}

}  // namespace tprimat::results
