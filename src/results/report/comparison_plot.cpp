#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compare/compare_runs.h"
#include "compare/contender.h"
#include "report/document.h"
#include "report/figures.h"
#include "report/plots/axis.h"
#include "report/report.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

using Texts = std::vector<std::string>;

constexpr size_t k_few = 4;  // participants: the labels of more have fewer figures

// Names the participants without the figure; where none has it, that is all there is to draw.
void note_missing(Panel& panel, const ModelGroup& group, const std::vector<bool>& present) {
  Texts missing;
  for (size_t i = 0; i < present.size(); ++i)
    if (!present[i]) missing.push_back(group.contenders[i].letter);
  if (missing.size() == present.size()) {
    panel = {.title = panel.title, .message = "not recorded"};
  } else if (!missing.empty()) {
    panel.note = "not recorded: " + join(missing, ", ");
  }
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

Panel plot_throughput(const ModelGroup& group) {
  const Metric& metric = *find_metric("tokens_per_second_per_gpu");
  const bool is_wide = group.contenders.size() <= k_few;
  Panel panel{.title = "tokens/s per device"};
  std::vector<bool> present;
  for (size_t i = 0; i < group.contenders.size(); ++i) {
    const Contender& each = group.contenders[i];
    const Estimate rate = read_figure(each, metric).value_or(Estimate{NAN, {}, {}});
    const auto at = static_cast<double>(i);
    present.push_back(is_drawable(rate.value));
    panel.bar_names.push_back({at, group.contenders.size() <= 2 ? each.letter + "  " + each.label : each.letter});
    if (!present.back()) continue;
    panel.bars.push_back({.at = at,
                          .value = rate.value,
                          .low = rate.low.value_or(NAN),
                          .high = rate.high.value_or(NAN),
                          .look = {i},
                          .label = is_wide ? format_figure(metric, rate.value) : short_count(rate.value),
                          .second_label = bar_remark(each, rate, is_wide)});
  }
  const bool has_mfu = std::ranges::any_of(panel.bars, [](const Bar& bar) { return !bar.second_label.empty(); });
  if (!is_wide && has_mfu) panel.title += ", below it MFU";
  note_missing(panel, group, present);
  return panel;
}

// At most about 400 points: the lowest and the highest of each bucket, so that no spike is lost.
std::vector<Point> thin_points(const std::vector<double>& values, size_t begin, size_t end) {
  constexpr size_t k_max_buckets = 200;
  const size_t bucket = std::max<size_t>(1, (end - begin + k_max_buckets - 1) / k_max_buckets);
  std::vector<Point> points;
  for (size_t start = begin; start < end; start += bucket) {
    const auto extremes = find_extremes(values, start, std::min(start + bucket, end), INFINITY);
    for (const size_t at : extremes) points.push_back({static_cast<double>(at + 1), values[at]});
    if (extremes.empty()) points.push_back({static_cast<double>(start + 1), NAN});
  }
  return points;
}

struct CurvePanel {
  const char* title;
  std::vector<double> RunResult::*values;
  bool may_be_log = false, marks_warmup = false;
};

bool any_drawable(const Series& series) {
  return std::ranges::any_of(series.points, [](const Point& point) { return is_drawable(point.y); });
}

// The curve of one run over its steps, and apart from it the points of its warm-up.
bool add_curve(Panel& panel, const CurvePanel& curve, const RunResult& run, size_t index) {
  const std::vector<double>& values = run.*curve.values;
  const int64_t warmup = curve.marks_warmup ? std::max<int64_t>(0, run.warmup.steps_excluded) : 0;
  const size_t start = std::min(values.size(), static_cast<size_t>(warmup));
  const Series steady{.look = {index}, .points = thin_points(values, start, values.size())};
  const Series warming{
      .look = {index}, .points = thin_points(values, 0, start), .has_line = false, .marks = Marks::hollow};
  if (any_drawable(warming)) {
    const double end = static_cast<double>(start) + 0.5;
    panel.series.push_back(warming);
    panel.references.push_back({.x = end, .y = -INFINITY, .to_x = end, .to_y = INFINITY, .look = Look{index}});
  }
  if (any_drawable(steady)) panel.series.push_back(steady);
  return any_drawable(warming) || any_drawable(steady);
}

// Logarithmic only where a linear axis would flatten the curve.
Scale choose_scale(const Panel& panel) {
  Range range;
  for (const Series& series : panel.series)
    for (const Point& point : series.points) range.include(point.y, Scale::linear);
  return range.low > 1e-9 && range.high < 1e9 && range.high > 6 * range.low ? Scale::logarithmic : Scale::linear;
}

Panel plot_curves(const ModelGroup& group, const CurvePanel& curve) {
  Panel panel{.title = curve.title, .x = {.title = "step", .is_whole = true}};
  std::vector<bool> present;
  size_t longest = 1;
  for (size_t i = 0; i < group.contenders.size(); ++i) {
    const RunResult& run = group.contenders[i].first();
    present.push_back(add_curve(panel, curve, run, i));
    longest = std::max(longest, (run.*curve.values).size());
  }
  const auto end = static_cast<double>(longest);
  panel.x.low = longest > 20 ? -0.015 * end : 0.5, panel.x.high = 1.015 * end + 0.5;
  if (curve.may_be_log) panel.y.scale = choose_scale(panel);
  note_missing(panel, group, present);
  return panel;
}

constexpr std::pair<const char*, const char*> k_memory_bars[] = {{"allocated", "peak_memory_allocated_gb"},
                                                                 {"reserved", "peak_memory_reserved_gb"},
                                                                 {"in use", "peak_device_used_gb"}};

// A cluster of bars for each figure that any participant has.
Panel plot_memory(const ModelGroup& group) {
  Panel panel{.title = "peak memory per device, GB"};
  const auto participants = static_cast<double>(group.contenders.size());
  const double step = 0.8 / participants;
  std::vector<bool> present(group.contenders.size(), false);
  for (const auto& [name, metric] : k_memory_bars)
    for (size_t i = 0; i < group.contenders.size(); ++i) {
      const auto value = read_figure(group.contenders[i], *find_metric(metric));
      if (!value || !is_drawable(value->value)) continue;
      if (panel.bar_names.empty() || panel.bar_names.back().name != name)
        panel.bar_names.push_back({static_cast<double>(panel.bar_names.size()), name});
      present[i] = true;
      panel.bars.push_back({.at = panel.bar_names.back().at + (static_cast<double>(i) - (participants - 1) / 2) * step,
                            .width = 0.88 * step,
                            .value = value->value,
                            .look = {i},
                            .label = format_significant(value->value, 3)});
    }
  note_missing(panel, group, present);
  return panel;
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

// What is known of its work, and the names of what is not.
std::string describe_work(const Contender& contender) {
  Texts known, unknown;
  for (const RunFact& fact : list_facts(contender))
    if (const std::string phrase = phrase_fact(fact, contender); !phrase.empty())
      (fact.value ? known : unknown).push_back(fact.value ? phrase : std::string(fact.name));
  return join(known, ", ") + (unknown.empty() ? "" : "; not known: " + join(unknown, ", "));
}

Panel list_runs(const ModelGroup& group) {
  constexpr size_t k_max = 8;
  Panel panel{.title = "runs"};
  for (size_t i = 0; i < std::min(group.contenders.size(), k_max); ++i) {
    const Contender& each = group.contenders[i];
    panel.key.push_back(
        {{i}, each.letter + "  " + each.label + ", " + describe_device(each.first()), describe_work(each)});
  }
  panel.key_rest = group.contenders.size() - panel.key.size();
  return panel;
}

// For one pair its headline; for many only the counts fit above a figure.
std::string subtitle(const Comparison& comparison, const ModelGroup& group) {
  if (group.pairs.empty()) return "one participant: nothing to compare";
  if (group.pairs.size() == 1) return headline(comparison, group, group.pairs.front());
  return count_verdicts(group);
}

Section plot_group(const Comparison& comparison, const ModelGroup& group) {
  constexpr size_t k_max_curves = 40;  // more are a smear
  ModelGroup shown{group.model, group.contenders, {}};
  shown.contenders.resize(std::min(shown.contenders.size(), k_max_curves));
  Section section{.title = group.model, .subtitle = subtitle(comparison, group)};
  section.is_doubtful = !std::ranges::all_of(group.pairs, [](const Pair& pair) { return pair.comparable; });
  section.panels = {plot_throughput(shown),
                    plot_curves(shown, {"step time, s", &RunResult::step_times, true, true}),
                    plot_curves(shown, {"loss, nats per token", &RunResult::loss_values}),
                    plot_memory(shown),
                    plot_curves(shown, {"learning rate", &RunResult::learning_rates}),
                    list_runs(shown)};
  section.panels.back().key_rest += group.contenders.size() - shown.contenders.size();
  return section;
}

bool shows_warmup(const Picture& picture) {
  return std::ranges::any_of(picture.sections, [](const Section& section) {
    return std::ranges::any_of(section.panels, [](const Panel& panel) { return !panel.references.empty(); });
  });
}

}  // namespace

Picture plot_comparison(const Comparison& comparison) {
  Picture picture;
  for (const ModelGroup& group : comparison.groups) picture.sections.push_back(plot_group(comparison, group));
  picture.footnote = "Lines on bars: 95 % interval.";
  if (shows_warmup(picture)) picture.footnote += " Hollow points: warm-up, not part of any figure.";
  return picture;
}

}  // namespace tprimat::results
