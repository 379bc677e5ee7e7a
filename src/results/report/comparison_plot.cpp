#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compare/compare_runs.h"
#include "compare/contender.h"
#include "report/axis_ticks.h"
#include "report/document.h"
#include "report/figures.h"
#include "report/plot_script.h"
#include "text/format.h"

namespace tprimat::results {
namespace embedded {
extern const std::string_view titles_gp, throughput_gp, curves_gp, memory_gp, legend_gp, empty_gp;
}

namespace {

using Series = std::vector<double>;
using Texts = std::vector<std::string>;

constexpr size_t k_few = 4;  // participants: the labels of more have fewer figures

constexpr double k_max_drawable = 1e30;  // limit of gnuplot's axes

bool is_drawable(double value) { return std::fabs(value) < k_max_drawable; }

bool any_drawable(std::span<const double> values) { return std::ranges::any_of(values, is_drawable); }

// False if no participant has the figure, which the panel then says; else the panel names those without.
bool begin_panel(PlotScript& script, const Frame& frame, const std::string& title, const ModelGroup& group,
                 const std::vector<bool>& present) {
  Texts missing;
  for (size_t i = 0; i < present.size(); ++i)
    if (!present[i]) missing.push_back(group.contenders[i].letter);
  script.begin_panel(frame, title, missing.empty() ? "" : "not recorded: " + join(missing, ", "));
  if (missing.size() < present.size()) return true;
  script.draw(embedded::empty_gp);
  return false;
}

std::string short_count(double value) {
  if (value >= 1e6) return fmt::format("{:.3g}M", value / 1e6);
  return value >= 1e4 ? fmt::format("{:.1f}k", value / 1e3) : fmt::format("{:.4g}", value);
}

// The second line over a bar: MFU, or that the bar has no interval.
std::string bar_remark(const Contender& contender, const Estimate& rate, bool is_wide) {
  const Metric& mfu = *find_metric("mfu");
  if (const auto figure = read_figure(contender, mfu))
    return is_wide ? "MFU " + format_figure(mfu, figure->value) : fmt::format("{:.0f} %", figure->value * 100);
  return rate.low || !is_wide ? "" : "no interval";
}

void draw_throughput(PlotScript& script, const ModelGroup& group, const Frame& frame) {
  const Metric& metric = *find_metric("tokens_per_second_per_gpu");
  const bool is_wide = group.contenders.size() <= k_few;
  Series rates, lows, highs;
  Texts names, first_lines, second_lines;
  std::vector<bool> present;
  double top = 0;
  for (const Contender& each : group.contenders) {
    const Estimate rate = read_figure(each, metric).value_or(Estimate{NAN, {}, {}});
    present.push_back(is_drawable(rate.value));
    rates.push_back(rate.value), lows.push_back(rate.low.value_or(NAN)), highs.push_back(rate.high.value_or(NAN));
    if (present.back()) top = std::max(top, rate.high.value_or(rate.value));
    names.push_back(group.contenders.size() <= 2 ? each.letter + "  " + shorten(each.label, 24) : each.letter);
    first_lines.push_back(!present.back() ? "" : is_wide ? format_figure(metric, rate.value) : short_count(rate.value));
    second_lines.push_back(bar_remark(each, rate, is_wide));
  }
  const std::string title = "tokens/s per device (95 % interval)";
  if (!begin_panel(script, frame, is_wide ? title : title + ", below it MFU", group, present)) return;
  script.set("rate", rates), script.set("low", lows), script.set("high", highs), script.set("top", top);
  script.set("name", names), script.set("first_line", first_lines), script.set("second_line", second_lines);
  script.draw(embedded::throughput_gp);
}

// At most about 1500 points: the lowest and the highest of each bucket, so that no spike is lost.
std::string write_points(const Series& values, size_t begin, size_t end) {
  constexpr size_t k_max_buckets = 750;
  const size_t bucket = std::max<size_t>(1, (end - begin + k_max_buckets - 1) / k_max_buckets);
  std::string rows;
  for (size_t start = begin; start < end; start += bucket)
    for (const size_t at : find_extremes(values, start, std::min(start + bucket, end), k_max_drawable))
      rows += fmt::format("{} {:.8g}\n", at + 1, values[at]);
  return rows;
}

struct CurvePanel {
  const char* title;
  Series RunResult::*values;
  bool may_be_log = false, marks_warmup = false;
};

// One curve per run over its steps.
void draw_curves(PlotScript& script, const ModelGroup& group, const Frame& frame, const CurvePanel& panel) {
  Series drawn, warmed, steps, excluded;
  std::vector<bool> present;
  double low = INFINITY, high = -INFINITY;
  for (const Contender& each : group.contenders) {
    const Series& values = each.first().*panel.values;
    const int64_t warmup = panel.marks_warmup ? std::max<int64_t>(0, each.first().warmup.steps_excluded) : 0;
    const size_t start = std::min(values.size(), static_cast<size_t>(warmup));
    const std::span<const double> all = values;
    present.push_back(any_drawable(all));
    drawn.push_back(any_drawable(all.subspan(start)));
    warmed.push_back(any_drawable(all.first(start)));
    steps.push_back(static_cast<double>(values.size()));
    excluded.push_back(static_cast<double>(start));
    for (const double value : values)
      if (is_drawable(value)) low = std::min(low, value), high = std::max(high, value);
    if (drawn.back())
      script.set_block(fmt::format("curve{}", steps.size()), write_points(values, start, values.size()));
    if (warmed.back()) script.set_block(fmt::format("warmup{}", steps.size()), write_points(values, 0, start));
  }
  if (!begin_panel(script, frame, panel.title, group, present)) return;
  script.set("drawn", drawn), script.set("warmed", warmed), script.set("steps", steps);
  script.set("excluded", excluded), script.set("low", low), script.set("high", high);
  script.set("may_be_log", panel.may_be_log);
  const AxisTicks axis = choose_ticks(low, high);
  script.set("axis_low", axis.low), script.set("axis_high", axis.high);
  script.set("tick", axis.at), script.set("tick_label", axis.labels);
  script.draw(embedded::curves_gp);
}

constexpr std::pair<const char*, const char*> k_memory_bars[] = {{"allocated", "peak_memory_allocated_gb"},
                                                                 {"reserved", "peak_memory_reserved_gb"},
                                                                 {"in use", "peak_device_used_gb"}};

void draw_memory(PlotScript& script, const ModelGroup& group, const Frame& frame) {
  std::vector<bool> present(group.contenders.size(), false);
  std::string bars;
  Texts names;
  double top = 0;
  for (const auto& [name, metric] : k_memory_bars)
    for (size_t i = 0; i < group.contenders.size(); ++i) {
      const auto value = read_figure(group.contenders[i], *find_metric(metric));
      if (!value || !is_drawable(value->value)) continue;
      if (names.empty() || names.back() != name) names.emplace_back(name);
      present[i] = true;
      top = std::max(top, value->value);
      bars += fmt::format("{} {} {:.8g}\n", names.size() - 1, i + 1, value->value);
    }
  if (!begin_panel(script, frame, "peak memory per device, GB", group, present)) return;
  script.set_block("bars", bars), script.set("name", names), script.set("top", top);
  script.set("participants", static_cast<double>(group.contenders.size()));
  script.draw(embedded::memory_gp);
}

// "bf16", "60 steps", "GBS 64"; empty if the legend's first line has it already or it is uninformative.
std::string phrase_fact(const RunFact& fact, const Contender& contender) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, fact.name) != names.end();
  };
  if (is_one_of({"platform", "framework", "device", "GPU cores", "strategy"})) return "";
  if (fact.name == "runs" && contender.runs.size() == 1) return "";
  if (is_one_of({"precision", "layout", "status"})) return fact.text();
  return is_one_of({"steps", "runs"}) ? fmt::format("{} {}", fact.text(), fact.name)
                                      : fmt::format("{} {}", fact.name, fact.text());
}

// Columns of the legend: few participants get larger letters.
struct LegendColumns {
  size_t name, facts;
};

// One line with the label, then two of facts, which may be empty.
Texts describe_contender(const Contender& contender, const LegendColumns& columns) {
  Texts known, unknown;
  for (const RunFact& fact : list_facts(contender))
    if (const std::string phrase = phrase_fact(fact, contender); !phrase.empty())
      (fact.value ? known : unknown).push_back(fact.value ? phrase : std::string(fact.name));
  Texts lines =
      wrap_words(join(known, ", ") + (unknown.empty() ? "" : "; not known: " + join(unknown, ", ")), columns.facts);
  if (lines.size() > 2) lines[1] = shorten(lines[1] + " …", columns.facts);
  lines.resize(2);
  lines.insert(
      lines.begin(),
      shorten(contender.letter + "  " + contender.label + ", " + describe_device(contender.first()), columns.name));
  return lines;
}

void draw_legend(PlotScript& script, const ModelGroup& group, const Frame& frame) {
  constexpr size_t k_max = 8;
  const size_t shown = std::min(group.contenders.size(), k_max), rest = group.contenders.size() - shown;
  const LegendColumns columns = shown <= k_few ? LegendColumns{46, 58} : LegendColumns{57, 72};
  Texts names, first_lines, second_lines;
  for (size_t i = 0; i < shown; ++i) {
    const Texts lines = describe_contender(group.contenders[i], columns);
    names.push_back(lines[0]), first_lines.push_back(lines[1]), second_lines.push_back(lines[2]);
  }
  script.begin_panel(frame, "runs");
  script.set("name", names), script.set("first_line", first_lines), script.set("second_line", second_lines);
  script.set("rest", rest > 0 ? fmt::format("and {} more", rest) : "");
  script.draw(embedded::legend_gp);
}

// For one pair its headline; for many only the counts fit above a figure.
std::string subtitle(const Comparison& comparison, const ModelGroup& group) {
  if (group.pairs.empty()) return "one participant: nothing to compare";
  if (group.pairs.size() == 1) return headline(comparison, group, group.pairs.front());
  return count_verdicts(group);
}

void draw_titles(PlotScript& script, const Comparison& comparison, const ModelGroup& group, const Frame& frame) {
  constexpr size_t k_columns = 175;
  Texts lines = wrap_words(subtitle(comparison, group), k_columns);
  if (lines.size() > 2) lines[1] = shorten(lines[1], k_columns - 2) + " …";
  lines.resize(2);
  script.begin_panel(frame, shorten(group.model, 60));
  script.set("first_line", lines[0]), script.set("second_line", lines[1]);
  script.set("is_comparable", std::ranges::all_of(group.pairs, [](const Pair& pair) { return pair.comparable; }));
  script.draw(embedded::titles_gp);
}

void draw_group(PlotScript& script, const Comparison& comparison, const ModelGroup& group, const Frame& band) {
  constexpr double k_panels = 0.905;   // of the band's height; the rest is for titles
  constexpr size_t k_max_curves = 40;  // more are a smear
  const double width = band.width / 3, height = band.height * k_panels / 2;
  const auto frame = [&](int row, int column) {
    return Frame{band.left + width * column, band.bottom + height * (1 - row), width, height};
  };
  ModelGroup shown{group.model, group.contenders, {}};
  shown.contenders.resize(std::min(shown.contenders.size(), k_max_curves));
  draw_titles(script, comparison, group, {band.left, band.bottom + 2 * height, band.width, band.height - 2 * height});
  draw_throughput(script, shown, frame(0, 0));
  draw_curves(script, shown, frame(0, 1), {"step time, s (hollow: warm-up)", &RunResult::step_times, true, true});
  draw_curves(script, shown, frame(0, 2), {"loss, nats per token", &RunResult::loss_values});
  draw_memory(script, shown, frame(1, 0));
  draw_curves(script, shown, frame(1, 1), {"learning rate", &RunResult::learning_rates});
  draw_legend(script, shown, frame(1, 2));
}

}  // namespace

std::string render_gnuplot(const Comparison& comparison, PlotFormat format) {
  const int bands = std::max(1, static_cast<int>(comparison.groups.size()));
  PlotScript script(format, {1600, 1000 * bands});
  const double height = 1.0 / bands;
  for (size_t i = 0; i < comparison.groups.size(); ++i)
    draw_group(script, comparison, comparison.groups[i], {0, 1 - height * static_cast<double>(i + 1), 1, height});
  return std::move(script).finish();
}

}  // namespace tprimat::results
