#include "report/gnuplot_panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "compare/contender.h"
#include "report/figures.h"
#include "report/gnuplot_style.h"
#include "report/wrap.h"

namespace tprimat::results {
namespace {

using Series = std::vector<double>;

// Everything that a panel before may have set is set anew: panels do not depend on their order.
std::string begin_panel(const Frame& frame, const std::string& title, const char* x_label) {
  return fmt::format(
      "reset\nset origin {:.5f},{:.5f}\nset size {:.5f},{:.5f}\nset title {} font ',13' offset 0,-0.4\nset xlabel '{}' "
      "offset 0,0.4\n"
      "set border 3 lc rgb '#555555'\nset tics nomirror out scale 0.6\nset grid ytics lc rgb '#E4E4E4' lt 1\n"
      "set lmargin 10\nset rmargin 2.5\nset tmargin 2.2\nset bmargin 3.4\nunset key\nset style fill solid 0.85 "
      "noborder\n",
      frame.left, frame.bottom, frame.width, frame.height, quote_gnuplot(title), x_label);
}

std::string empty_panel(const Frame& frame, const std::string& title) {
  return begin_panel(frame, title, "") +
         "unset tics\nset border 0\nset label 1 'not recorded' at graph 0.5,0.5 center font ',14' textcolor rgb "
         "'#888888'\n"
         "plot [0:1][0:1] -1 notitle\n";
}

// Says under the title which runs have no curve.
std::string name_missing(const ModelGroup& group, const std::vector<bool>& present) {
  std::string letters;
  for (size_t i = 0; i < present.size(); ++i)
    if (!present[i]) letters += (letters.empty() ? "" : ", ") + group.contenders[i].letter;
  if (letters.empty()) return "";
  return fmt::format("set label 90 {} at graph 0.99,0.97 right font ',10' textcolor rgb '#888888' front\n",
                     quote_gnuplot("not recorded: " + letters));
}

// What gnuplot can scale an axis to.
bool is_drawable(double value) { return std::fabs(value) < 1e30; }

// At most about 1500 points: of each bucket the lowest and the highest, so that no spike is lost.
std::string write_points(const std::string& name, const Series& values, size_t begin, size_t end) {
  constexpr size_t k_max_buckets = 750;
  const size_t bucket = std::max<size_t>(1, (end - begin + k_max_buckets - 1) / k_max_buckets);
  std::string block = "$" + name + " << EOD\n";
  for (size_t start = begin; start < end; start += bucket) {
    std::optional<size_t> low, high;
    for (size_t at = start; at < std::min(start + bucket, end); ++at) {
      if (!is_drawable(values[at])) continue;
      if (!low || values[at] < values[*low]) low = at;
      if (!high || values[at] > values[*high]) high = at;
    }
    if (!low) continue;
    block += fmt::format("{} {:.8g}\n", std::min(*low, *high) + 1, values[std::min(*low, *high)]);
    if (low != high) block += fmt::format("{} {:.8g}\n", std::max(*low, *high) + 1, values[std::max(*low, *high)]);
  }
  return block + "EOD\n";
}

bool any_drawable(const Series& values, size_t begin, size_t end) {
  return std::any_of(values.begin() + static_cast<std::ptrdiff_t>(begin),
                     values.begin() + static_cast<std::ptrdiff_t>(end), is_drawable);
}

struct Range {
  double low = INFINITY, high = -INFINITY;
  void include(double value) {
    if (is_drawable(value)) low = std::min(low, value), high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

// 1, 2 and 5 times every power of ten within the range: gnuplot alone labels only the powers.
std::string log_tics(const Range& range) {
  std::string tics;
  for (double decade = std::pow(10, std::floor(std::log10(range.low)) - 1); decade <= range.high * 10; decade *= 10)
    for (const double step : {1.0, 2.0, 5.0})
      if (step * decade > range.low / 1.2 && step * decade < range.high * 1.4)
        tics += fmt::format("{}{:.3g}", tics.empty() ? "" : ", ", step * decade);
  return "set ytics (" + tics + ")\n";
}

// A logarithmic axis only where a linear one would flatten the curve.
std::string set_y_range(const Range& range, bool may_be_log) {
  constexpr double k_log_from = 6, k_min = 1e-9, k_max = 1e9;  // s
  if (may_be_log && range.low > k_min && range.high < k_max && range.high / range.low > k_log_from)
    return fmt::format("set logscale y\nset yrange [{:.6g}:{:.6g}]\n", range.low / 1.2, range.high * 1.4) +
           log_tics(range);
  const double margin = std::max({0.08 * (range.high - range.low), 0.01 * std::fabs(range.high), 1e-12});
  const double bottom = range.low >= 0 ? std::max(0.0, range.low - margin) : range.low - margin;
  return fmt::format("set yrange [{:.6g}:{:.6g}]\n", bottom, range.high + 1.6 * margin);
}

struct CurveStyle {
  const char* title;
  bool may_be_log = false, marks_warmup = false;
  const char* y_format = "";
};

// The warm-up of one run: hollow points, and a fine line where the steady state begins.
struct WarmupMark {
  std::string block, curve, line;
};
WarmupMark mark_warmup(const Series& values, size_t excluded, size_t i) {
  return {write_points(fmt::format("warmup{}", i), values, 0, excluded),
          fmt::format("$warmup{} using 1:2 with points lw 1.4 lc rgb '{}' pt 6 ps {} notitle", i, plot_colour(i),
                      excluded > 20 ? 0.5 : 1.3),
          fmt::format("set arrow from first {0},graph 0 to first {0},graph 1 nohead lw 1 dt 3 lc rgb '{1}'\n",
                      static_cast<double>(excluded) + 0.5, plot_colour(i))};
}

std::string draw_curve(size_t i, size_t count) {
  const auto interval =
      static_cast<int64_t>(std::clamp<size_t>(count / 8, 1, 180));  // negative: the line is broken around the point
  return fmt::format(
      "$curve{} using 1:2 with linespoints lw 1.8 lc rgb '{}' dt {} pt {} ps 0.9 pointinterval {} notitle", i,
      plot_colour(i), plot_dash(i), plot_point(i), -interval);
}

// One curve per run over its steps.
std::string plot_curves(const ModelGroup& group, const Frame& frame, Series RunResult::*member,
                        const CurveStyle& style) {
  std::vector<bool> present;
  std::string blocks, curves, lines;
  Range range;
  size_t longest = 1;
  for (size_t i = 0; i < group.contenders.size(); ++i) {
    const RunResult& run = group.contenders[i].first();
    const Series& values = run.*member;
    present.push_back(any_drawable(values, 0, values.size()));
    if (!present.back()) continue;
    for (const double value : values) range.include(value);
    longest = std::max(longest, values.size());
    const size_t excluded =
        style.marks_warmup
            ? std::min(values.size(), static_cast<size_t>(std::max<int64_t>(0, run.warmup.steps_excluded)))
            : 0;
    if (any_drawable(values, excluded, values.size())) {
      blocks += write_points(fmt::format("curve{}", i), values, excluded, values.size());
      curves += (curves.empty() ? "" : ", ") + draw_curve(i, values.size());
    }
    if (!any_drawable(values, 0, excluded)) continue;
    const WarmupMark mark = mark_warmup(values, excluded, i);
    blocks += mark.block, curves += (curves.empty() ? "" : ", ") + mark.curve, lines += mark.line;
  }
  if (range.empty()) return empty_panel(frame, style.title);
  std::string script = blocks + begin_panel(frame, style.title, "step") + set_y_range(range, style.may_be_log) + lines +
                       name_missing(group, present);
  script += fmt::format("set xrange [{}:{}]\n", longest > 20 ? -0.015 * static_cast<double>(longest) : 0.5,
                        1.015 * static_cast<double>(longest) + 0.5);
  if (*style.y_format != '\0') script += fmt::format("set format y '{}'\n", style.y_format);
  return script + "plot " + curves + "\n";
}

std::string bar_row(double x, double height, size_t i) {
  return fmt::format("{:.4f} {:.8g} 0x{}\n", x, height, plot_colour(i) + 1);
}

std::string bar_text(const std::string& text, double x, double y, double lift, const char* size) {
  return fmt::format("set label {} at {:.4f},{:.8g} center offset 0,{} font ',{}' front\n", quote_gnuplot(text), x, y,
                     lift, size);
}

// Under a bar: the letter, and the name where it fits.
std::string bar_tics(const ModelGroup& group) {
  std::string tics;
  for (size_t i = 0; i < group.contenders.size(); ++i) {
    const Contender& contender = group.contenders[i];
    const std::string name =
        group.contenders.size() <= 2 ? contender.letter + "  " + shorten(contender.label, 24) : contender.letter;
    tics += fmt::format("{}{} {}", i > 0 ? ", " : "", quote_gnuplot(name), i + 1);
  }
  return "set xtics (" + tics + ") scale 0\n";
}

std::string short_count(double value) {
  if (value >= 1e6) return fmt::format("{:.3g}M", value / 1e6);
  return value >= 1e4 ? fmt::format("{:.1f}k", value / 1e3) : fmt::format("{:.4g}", value);
}

struct MemoryBars {
  const char* name;
  std::string_view metric;
};
constexpr std::array<MemoryBars, 3> k_memory_bars = {MemoryBars{"allocated", "peak_memory_allocated_gb"},
                                                     MemoryBars{"reserved", "peak_memory_reserved_gb"},
                                                     MemoryBars{"in use", "peak_device_used_gb"}};

// Sizes of the legend: few participants get larger letters.
struct LegendStyle {
  int name_size, fact_size;
  size_t name_columns, fact_columns;
  double entry_step, line_step;  // shares of the panel's height
};
constexpr LegendStyle k_wide{13, 11, 46, 58, 0.235, 0.048}, k_tight{11, 9, 57, 72, 0.125, 0.036};

// Whether the legend's first line says it already, or it says nothing.
bool is_left_out(RunFactKind kind, const Contender& contender) {
  switch (kind) {
    case RunFactKind::platform:
    case RunFactKind::framework:
    case RunFactKind::device:
    case RunFactKind::strategy: return true;
    case RunFactKind::runs: return contender.runs.size() == 1;
    default: return false;
  }
}

// "bf16", "60 steps", "GBS 64"
std::string phrase_fact(const RunFact& fact) {
  switch (fact.kind) {
    case RunFactKind::precision:
    case RunFactKind::layout:
    case RunFactKind::status: return fact.text();
    case RunFactKind::steps:
    case RunFactKind::runs: return fmt::format("{} {}", fact.text(), fact.name());
    default: return fmt::format("{} {}", fact.name(), fact.text());
  }
}

// One line who it is, then at most two of facts.
std::vector<std::string> describe_contender(const Contender& contender, const LegendStyle& style) {
  std::string facts, unknown;
  for (const RunFact& fact : list_facts(contender)) {
    if (is_left_out(fact.kind, contender)) continue;
    if (fact.value)
      facts += (facts.empty() ? "" : ", ") + phrase_fact(fact);
    else
      unknown += fmt::format("{}{}", unknown.empty() ? "not known: " : ", ", fact.name());
  }
  std::vector<std::string> lines = wrap_words(facts + (unknown.empty() ? "" : "; " + unknown), style.fact_columns);
  if (lines.size() > 2) lines.resize(2), lines.back() = shorten(lines.back() + " …", style.fact_columns);
  lines.insert(lines.begin(),
               shorten(contender.letter + "  " + contender.label + ", " + describe_device(contender.first()),
                       style.name_columns));
  return lines;
}

std::string throughput_labels(const Contender& contender, size_t participants, double x) {
  const Metric &rate = *find_metric("tokens_per_second_per_gpu"), &mfu = *find_metric("mfu");
  const Estimate value = *read_figure(contender, rate);
  const auto utilisation = read_figure(contender, mfu);
  const double top = value.high.value_or(value.value);
  const bool wide = participants <= 4;
  const std::string second = utilisation          ? (wide ? "MFU " + format_figure(mfu, utilisation->value)
                                                          : fmt::format("{:.0f} %", utilisation->value * 100))
                             : value.low || !wide ? ""
                                                  : "no interval";
  const std::string first = wide ? format_figure(rate, value.value) : short_count(value.value);
  return bar_text(first, x, top, second.empty() ? 0.7 : 1.7, "12") +
         (second.empty() ? "" : bar_text(second, x, top, 0.6, "10"));
}

std::string warn_of_ranking(const ModelGroup& group) {
  const bool comparable =
      std::all_of(group.pairs.begin(), group.pairs.end(), [](const Pair& pair) { return pair.comparable; });
  if (comparable) return "";
  return "set label 91 'not comparable: see the audit' at graph 0.01,0.97 left font ',11' textcolor rgb '#B03A00' "
         "front\n";
}

}  // namespace

std::string plot_throughput(const ModelGroup& group, const Frame& frame) {
  const Metric& rate = *find_metric("tokens_per_second_per_gpu");
  const size_t participants = group.contenders.size();
  const char* title =
      participants <= 4 ? "tokens/s per device (95 % interval)" : "tokens/s per device (95 % interval), below it MFU";
  std::vector<bool> present;
  std::string bars, intervals, labels;
  Range range;
  for (size_t i = 0; i < participants; ++i) {
    const auto value = read_figure(group.contenders[i], rate);
    present.push_back(value.has_value());
    if (!value) continue;
    const double x = static_cast<double>(i + 1);
    range.include(value->high.value_or(value->value));
    bars += bar_row(x, value->value, i);
    labels += throughput_labels(group.contenders[i], participants, x);
    if (value->low && value->high)
      intervals += fmt::format(
          "set arrow from first {0},{1:.8g} to first {0},{2:.8g} heads size screen 0.004,90 lw 1.8 lc rgb '#111111' "
          "front\n",
          x, *value->low, *value->high);
  }
  if (range.empty()) return empty_panel(frame, title);
  std::string script = "$bars << EOD\n" + bars + "EOD\n" + begin_panel(frame, title, "");
  script += fmt::format("set xrange [0.3:{}]\nset yrange [0:{:.8g}]\nset boxwidth 0.62\n",
                        static_cast<double>(participants) + 0.7, range.high * 1.25);
  return script + name_missing(group, present) + warn_of_ranking(group) + bar_tics(group) + intervals + labels +
         "plot $bars using 1:2:3 with boxes lc rgb variable notitle\n";
}

std::string plot_step_times(const ModelGroup& group, const Frame& frame) {
  return plot_curves(group, frame, &RunResult::step_times, {"step time, s (hollow: warm-up)", true, true});
}

std::string plot_losses(const ModelGroup& group, const Frame& frame) {
  return plot_curves(group, frame, &RunResult::loss_values, {"loss, nats per token"});
}

std::string plot_learning_rates(const ModelGroup& group, const Frame& frame) {
  return plot_curves(group, frame, &RunResult::learning_rates, {"learning rate", false, false, "%.1e"});
}

std::string plot_memory(const ModelGroup& group, const Frame& frame) {
  const char* title = "peak memory per device, GB";
  const double count = static_cast<double>(group.contenders.size()), width = 0.8 / count;
  std::vector<bool> present(group.contenders.size(), false);
  std::string bars, labels, tics;
  Range range;
  double cluster = 0;
  for (const MemoryBars& kind : k_memory_bars) {
    bool any = false;
    for (size_t i = 0; i < group.contenders.size(); ++i) {
      const auto value = read_figure(group.contenders[i], *find_metric(kind.metric));
      if (!value) continue;
      any = present[i] = true;
      range.include(value->value);
      const double x = cluster + (static_cast<double>(i) - (count - 1) / 2) * width;
      bars += bar_row(x, value->value, i);
      labels += bar_text(fmt::format("{:.{}f}", value->value, count <= 4 ? 1 : 0), x, value->value, 0.6, "10");
    }
    if (!any) continue;
    tics += fmt::format("{}'{}' {}", tics.empty() ? "" : ", ", kind.name, cluster);
    cluster += 1;
  }
  if (range.empty()) return empty_panel(frame, title);
  return "$bars << EOD\n" + bars + "EOD\n" + begin_panel(frame, title, "") +
         fmt::format("set xrange [-0.6:{}]\nset yrange [0:{:.8g}]\nset boxwidth {}\n", cluster - 0.4, range.high * 1.18,
                     width * 0.88) +
         name_missing(group, present) + "set xtics (" + tics + ") scale 0\n" + labels +
         "plot $bars using 1:2:3 with boxes lc rgb variable notitle\n";
}

std::string plot_legend(const ModelGroup& group, const Frame& frame) {
  constexpr size_t k_max = 8;
  const size_t shown = std::min(group.contenders.size(), k_max);
  const LegendStyle& style = shown <= 4 ? k_wide : k_tight;
  std::string script =
      begin_panel(frame, "runs", "") + "unset tics\nset border 0\nset lmargin 1\nset rmargin 1\nset bmargin 1\n";
  for (size_t i = 0; i < shown; ++i) {
    double y = 0.97 - style.entry_step * static_cast<double>(i);
    script +=
        fmt::format("set arrow from graph 0.01,{0:.4f} to graph 0.075,{0:.4f} nohead lw 2.5 lc rgb '{1}' dt {2}\n", y,
                    plot_colour(i), plot_dash(i));
    script += fmt::format("set label '' at graph 0.0425,{:.4f} point pt {} ps 1.2 lc rgb '{}' front\n", y,
                          plot_point(i), plot_colour(i));
    const std::vector<std::string> lines = describe_contender(group.contenders[i], style);
    for (size_t line = 0; line < lines.size(); ++line, y -= style.line_step)
      script += fmt::format("set label {} at graph 0.095,{:.4f} left font ',{}' textcolor rgb '{}'\n",
                            quote_gnuplot(lines[line]), y, line == 0 ? style.name_size : style.fact_size,
                            line == 0 ? "#000000" : "#555555");
  }
  if (shown < group.contenders.size())
    script +=
        fmt::format("set label 'and {} more' at graph 0.095,-0.02 left font ',10'\n", group.contenders.size() - shown);
  return script + "plot [0:1][0:1] -1 notitle\n";
}

}  // namespace tprimat::results
