#include "report/document.h"

#include <fmt/format.h>

#include <algorithm>

#include "compare/compare_runs.h"
#include "compare/contender.h"
#include "report/figures.h"
#include "report/wrap.h"

namespace tprimat {
namespace {

DocumentPart make_title(std::string text) { return {DocumentPart::Kind::title, std::move(text), {}, {}}; }
DocumentPart make_heading(std::string text) { return {DocumentPart::Kind::heading, std::move(text), {}, {}}; }
DocumentPart make_lines(std::vector<Line> lines) { return {DocumentPart::Kind::lines, "", std::move(lines), {}}; }
DocumentPart make_table(TextTable table) { return {DocumentPart::Kind::table, "", {}, std::move(table)}; }

Tone tone_of(const Pair& pair) {
  if (!pair.comparable) return Tone::bad;
  return pair.verdict == Verdict::inconclusive ? Tone::doubtful : Tone::good;
}

// With more pairs than this one reads tables, not sentences.
constexpr size_t k_most_pairs = 6;

DocumentPart list_headlines(const Comparison& comparison, const ModelGroup& group) {
  std::vector<Line> lines;
  if (group.pairs.size() > k_most_pairs)
    return make_lines(
        {{count_verdicts(group) + ".", Tone::doubtful, "name a --baseline to have one sentence per run"}});
  for (const Pair& pair : group.pairs) lines.push_back({headline(comparison, group, pair) + ".", tone_of(pair), ""});
  if (group.pairs.empty())
    lines.push_back({"One participant of this model: there is nothing to compare it with.", Tone::doubtful, ""});
  return make_lines(std::move(lines));
}

DocumentPart tabulate_runs(const ModelGroup& group) {
  TextTable table{{"", "run"}, {}, {}};
  for (const auto& [name, value] : list_facts(group.contenders.front()))
    if (name != "platform" && name != "framework") table.header.push_back(name);
  for (const Contender& contender : group.contenders) {
    std::vector<std::string> row{contender.letter, contender.label};
    for (const auto& [name, value] : list_facts(contender))
      if (name != "platform" && name != "framework") row.push_back(shorten(value, 34));
    table.rows.push_back(std::move(row));
  }
  return make_table(std::move(table));
}

// Half the interval's width as a share of the value: what remains of the intervals where columns are many.
std::string relative_uncertainty(const std::optional<Estimate>& estimate) {
  if (!estimate || !estimate->low || !estimate->high || estimate->value == 0) return "-";
  return fmt::format("± {}", format_percent((*estimate->high - *estimate->low) / 2 / estimate->value));
}

DocumentPart tabulate_figures(const ModelGroup& group) {
  constexpr size_t k_most_intervals = 4;
  const bool few = group.contenders.size() <= k_most_intervals;
  TextTable table{{"figure"}, {}, {}};
  for (const Contender& contender : group.contenders) {
    table.right.push_back(table.header.size());
    table.header.push_back(contender.letter);
  }
  for (const Metric* metric : present_metrics(group)) {
    std::vector<std::string> row{std::string(metric->title)}, uncertainty{"  95 % interval"};
    for (const Contender& contender : group.contenders) {
      const auto figure = read_figure(contender, *metric);
      row.push_back(few ? format_estimate(*metric, figure) : figure ? format_figure(*metric, figure->value) : "-");
      uncertainty.push_back(relative_uncertainty(figure));
    }
    table.rows.push_back(std::move(row));
    if (!few && metric == &metrics().front()) table.rows.push_back(std::move(uncertainty));
  }
  return make_table(std::move(table));
}

std::string format_ratio(double ratio) { return format_significant(ratio, 4); }

std::vector<std::string> describe_pair(const Comparison& comparison, const ModelGroup& group, const Pair& pair) {
  if (!shows_verdict(comparison, pair))
    return {pair_name(group, pair), "withheld", "", "not comparable", "see the audit"};
  std::string interval = "-";
  if (pair.ratio && pair.ratio->low && pair.ratio->high)
    interval = fmt::format("{} to {}", format_ratio(*pair.ratio->low), format_ratio(*pair.ratio->high));
  return {pair_name(group, pair), pair.ratio ? format_ratio(pair.ratio->value) : "-", interval,
          std::string(enum_name(pair.verdict)) + (pair.comparable ? "" : ", forced"), pair.explanation};
}

DocumentPart tabulate_pairs(const Comparison& comparison, const ModelGroup& group) {
  TextTable table{{"pair", "tokens/s per device", "95 % interval", "verdict", "because"}, {}, {1}};
  for (const Pair& pair : group.pairs) table.rows.push_back(describe_pair(comparison, group, pair));
  return make_table(std::move(table));
}

// Ratios of the further metrics, for the pairs that may be compared.
std::optional<DocumentPart> tabulate_ratios(const Comparison& comparison, const ModelGroup& group) {
  TextTable table{{"ratio"}, {}, {}};
  std::vector<const Pair*> shown;
  for (const Pair& pair : group.pairs)
    if (shows_verdict(comparison, pair)) shown.push_back(&pair);
  if (shown.size() > k_most_pairs) return std::nullopt;
  for (const Pair* pair : shown)
    table.right.push_back(table.header.size()), table.header.push_back(pair_name(group, *pair));
  for (const Metric& metric : metrics()) {
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

// The same sentence about several participants stands once, with all their letters.
struct Remark {
  Finding finding;
  std::string whose;
};

void add_remark(std::vector<Remark>& all, const Finding& finding, const std::string& whose) {
  const auto same = std::find_if(all.begin(), all.end(),
                                 [&](const Remark& each) { return each.finding.sentence == finding.sentence; });
  if (same == all.end())
    all.push_back({finding, whose});
  else if (!same->whose.ends_with(whose))
    same->whose += ", " + whose;
}

std::vector<Remark> gather_findings(const ModelGroup& group) {
  std::vector<Remark> all;
  for (const Pair& pair : group.pairs)
    for (const Finding& finding : pair.findings) add_remark(all, finding, pair_name(group, pair));
  for (const Contender& contender : group.contenders)
    for (const Finding& finding : contender.findings) add_remark(all, finding, contender.letter);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.finding.severity > b.finding.severity; });
  return all;
}

Tone tone_of(Severity severity) {
  return severity == Severity::error ? Tone::bad : severity == Severity::warning ? Tone::doubtful : Tone::plain;
}

DocumentPart list_findings(const ModelGroup& group) {
  std::vector<Line> lines;
  for (const auto& [finding, whose] : gather_findings(group))
    lines.push_back({fmt::format("{} {}: {}", enum_name(finding.severity), whose, finding.sentence),
                     tone_of(finding.severity), finding.remedy});
  if (lines.empty()) lines.push_back({"nothing found", Tone::good, ""});
  return make_lines(std::move(lines));
}

std::optional<DocumentPart> list_file_notes(const ModelGroup& group) {
  std::vector<Remark> all;
  for (const Contender& contender : group.contenders)
    for (const LoadedRun& run : contender.runs)
      for (const std::string& warning : run.result.warnings)
        add_remark(all, {"", Severity::note, warning, ""}, contender.letter);
  if (all.empty()) return std::nullopt;
  std::vector<Line> lines;
  for (const Remark& remark : all) lines.push_back({remark.whose + ": " + remark.finding.sentence, Tone::plain, ""});
  return make_lines(std::move(lines));
}

DocumentPart list_files(const ModelGroup& group) {
  std::vector<Line> lines;
  for (const Contender& contender : group.contenders)
    for (const LoadedRun& run : contender.runs) lines.push_back({contender.letter + ": " + run.path, Tone::plain, ""});
  return make_lines(std::move(lines));
}

void add_group(const Comparison& comparison, const ModelGroup& group, Document& document) {
  document.push_back(make_title(group.model));
  document.push_back(list_headlines(comparison, group));
  document.push_back(tabulate_runs(group));
  document.push_back(make_heading("Figures"));
  document.push_back(tabulate_figures(group));
  if (!group.pairs.empty()) {
    document.push_back(make_heading("Pairs"));
    document.push_back(tabulate_pairs(comparison, group));
    if (const auto ratios = tabulate_ratios(comparison, group)) document.push_back(*ratios);
  }
  document.push_back(make_heading("Audit"));
  document.push_back(list_findings(group));
  if (const auto notes = list_file_notes(group)) {
    document.push_back(make_heading("What the files say"));
    document.push_back(*notes);
  }
  document.push_back(make_heading("Files"));
  document.push_back(list_files(group));
}

void make_printable(DocumentPart& block) {
  block.text = printable(block.text);
  for (Line& line : block.lines) line.text = printable(line.text), line.aside = printable(line.aside);
  for (auto& row : block.table.rows)
    for (std::string& cell : row) cell = printable(cell);
}

}  // namespace

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
  document.push_back(make_lines(
      {{fmt::format(
            "Figures are of the steady steps. [low to high] is the 95 % interval: of one run the noise within it, of "
            "several the spread between them. Verdicts judge tokens/s per device: the whole interval beyond {0} is "
            "faster or slower, within {0} is the same. GB is 1e9 bytes.",
            format_percent(comparison.smallest_effect, 0)),
        Tone::faint, ""}}));
  for (DocumentPart& block : document) make_printable(block);
  return document;
}

}  // namespace tprimat
