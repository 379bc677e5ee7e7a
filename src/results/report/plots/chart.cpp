#include "report/plots/chart.h"

#include <algorithm>

#include "report/plots/data_marks.h"
#include "report/plots/style.h"
#include "report/plots/text_width.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

constexpr double k_label_line = 15;  // of the labels over bars

Range data_range(const Panel& panel, bool is_y) {
  Range range;
  const Scale scale = is_y ? panel.y.scale : panel.x.scale;
  for (const Series& series : panel.series)
    for (const Point& point : series.points) {
      if (!is_drawable(point.x, panel.x.scale) || !is_drawable(point.y, panel.y.scale)) continue;
      range.include(is_y ? point.y : point.x, scale);
    }
  return range;
}

// Around the bars, with space for the labels over them.
Range bar_range(const Panel& panel, double height) {
  double labels = 0.05 * height;
  Range range{panel.y.low.value_or(0), panel.y.low.value_or(0)};
  for (const Bar& bar : panel.bars) {
    for (const double value : {std::max(bar.from, range.low), bar.value, bar.low, bar.high})
      range.include(value, Scale::linear);
    const int lines = (bar.label.empty() ? 0 : 1) + (bar.second_label.empty() ? 0 : 1);
    labels = std::max(labels, lines * k_label_line + 8);
  }
  if (range.low == range.high) range.high += 1;
  const double share = std::min(0.5, labels / std::max(1.0, height));
  range.high += (range.high - range.low) * share / (1 - share);
  return range;
}

Range y_range(const Panel& panel, double height) {
  return panel.bars.empty() ? choose_range(panel.y, data_range(panel, true)) : bar_range(panel, height);
}

Range x_range(const Panel& panel) {
  if (panel.bars.empty()) return choose_range(panel.x, data_range(panel, false));
  Range range;
  for (const Bar& bar : panel.bars)
    range.include(bar.at - 0.6, Scale::linear), range.include(bar.at + 0.6, Scale::linear);
  for (const BarName& name : panel.bar_names)
    range.include(name.at - 0.6, Scale::linear), range.include(name.at + 0.6, Scale::linear);
  return choose_range({.low = range.low, .high = range.high}, range);
}

// Centred on their places; neighbours keep a gap, and none leaves the panel.
bool fits_across(const AxisTicks& ticks, const AxisMap& map, const Box& outer) {
  constexpr double k_gap = 8, k_beyond = 12;
  double end = outer.left - k_gap;
  for (size_t i = 0; i < ticks.at.size(); ++i) {
    const double half = text_width(ticks.labels[i], k_tick_size) / 2, at = map(ticks.at[i]);
    if (at - half < end + k_gap || at + half > outer.right + k_beyond) return false;
    end = at + half;
  }
  return true;
}

// Names below bars: shortened where their slot is wide, else every nth.
void draw_bar_names(Drawing& drawing, const Panel& panel, const AxisMap& x, double y) {
  constexpr double k_gap = 6, k_worth_cutting = 60;
  if (panel.bar_names.empty()) return;
  double widest = 0;
  for (const BarName& name : panel.bar_names)
    widest = std::max(widest, text_width(printable(name.name), k_tick_size) + k_gap);
  const double slot = std::fabs(x.to - x.from) / static_cast<double>(panel.bar_names.size());
  const size_t stride = slot >= std::min(widest, k_worth_cutting)
                            ? 1
                            : static_cast<size_t>(std::ceil(std::min(widest, k_worth_cutting) / slot));
  for (size_t i = 0; i < panel.bar_names.size(); i += stride)
    add_text(drawing,
             {{x(panel.bar_names[i].at), y}, panel.bar_names[i].name, k_tick_size, k_text_colour, Align::middle},
             slot * static_cast<double>(stride) - k_gap);
}

void draw_x_axis(Drawing& drawing, const Panel& panel, const Chart& chart, const Box& outer) {
  constexpr double k_labels = 18, k_title = 38, k_tick = 4;
  const Box& axes = chart.axes;
  const auto fits = [&](const AxisTicks& ticks) { return fits_across(ticks, chart.x, outer); };
  if (!panel.bars.empty()) {
    draw_bar_names(drawing, panel, chart.x, axes.bottom + k_labels);
  } else {
    const AxisTicks ticks = choose_ticks(panel.x, chart.x.range, fits);
    for (size_t i = 0; i < ticks.at.size(); ++i) {
      const double x = chart.x(ticks.at[i]);
      if (panel.x.has_grid)
        drawing.shapes.emplace_back(Path{.places = {{x, axes.top}, {x, axes.bottom}}, .stroke = k_grid_colour});
      drawing.shapes.emplace_back(
          Path{.places = {{x, axes.bottom}, {x, axes.bottom + k_tick}}, .stroke = k_axis_colour});
      if (fits(ticks))
        add_text(drawing, {{x, axes.bottom + k_labels}, ticks.labels[i], k_tick_size, k_faint_colour, Align::middle},
                 outer.width());
    }
  }
  add_text(drawing,
           {{(axes.left + axes.right) / 2, axes.bottom + k_title},
            label_of(panel.x),
            k_tick_size,
            k_text_colour,
            Align::middle},
           axes.width());
}

void draw_y_axis(Drawing& drawing, const Panel& panel, const Chart& chart, const Box& outer) {
  constexpr double k_gap = 8, k_below_middle = 4.2;
  const Box& axes = chart.axes;
  const AxisTicks ticks = y_ticks(panel, axes.height());
  for (size_t i = 0; i < ticks.at.size(); ++i) {
    const double y = chart.y(ticks.at[i]);
    drawing.shapes.emplace_back(Path{.places = {{axes.left, y}, {axes.right, y}}, .stroke = k_grid_colour});
    add_text(drawing,
             {{axes.left - k_gap, y + k_below_middle}, ticks.labels[i], k_tick_size, k_faint_colour, Align::end},
             axes.left - outer.left);
  }
  Label title{{outer.left + k_tick_size, (axes.top + axes.bottom) / 2},
              label_of(panel.y),
              k_tick_size,
              k_text_colour,
              Align::middle};
  title.is_upright = false;
  add_text(drawing, title, axes.height());
}

// The highest of a bar's labels stands over its interval.
void draw_bar_labels(Drawing& drawing, const Panel& panel, const Chart& chart) {
  constexpr double k_small_size = 9.5;
  const double slot = bar_slot(panel, chart);
  const auto fit = [&](std::string Bar::*label, double size) {
    return std::ranges::all_of(panel.bars, [&](const Bar& bar) { return text_width(bar.*label, size) <= slot; });
  };
  const double size = fit(&Bar::label, k_tick_size) ? k_tick_size : k_small_size;
  const double second_size = std::min(size, k_note_size);
  const bool first = fit(&Bar::label, size), second = first && fit(&Bar::second_label, second_size);
  for (const Bar& bar : panel.bars) {
    if (!is_drawable(bar.value)) continue;
    const double top = chart.y(std::max({bar.value, bar.from, is_drawable(bar.high) ? bar.high : bar.from}));
    const bool has_second = second && !bar.second_label.empty();
    const double x = chart.x(bar.at), y = top - 6;
    if (has_second) add_text(drawing, {{x, y}, bar.second_label, second_size, k_faint_colour, Align::middle}, slot);
    if (first)
      add_text(drawing, {{x, has_second ? y - k_label_line : y}, bar.label, size, k_text_colour, Align::middle}, slot);
  }
}

}  // namespace

std::string label_of(const Axis& axis) {
  return axis.unit.empty() ? axis.title : axis.title.empty() ? axis.unit : axis.title + ", " + axis.unit;
}

AxisTicks y_ticks(const Panel& panel, double height) {
  constexpr double k_line = 2.2 * k_tick_size;
  const Axis axis = panel.bars.empty() ? panel.y : Axis{};
  const Range range = y_range(panel, height);
  const AxisMap map{range, axis.scale, height, 0};
  return choose_ticks(axis, range, [&](const AxisTicks& ticks) {
    for (size_t i = 1; i < ticks.at.size(); ++i)
      if (std::fabs(map(ticks.at[i]) - map(ticks.at[i - 1])) < k_line) return false;
    return true;
  });
}

void draw_chart(Drawing& drawing, const Panel& panel, const Box& outer, const Box& axes) {
  const Chart chart{
      axes,
      {x_range(panel), panel.bars.empty() ? panel.x.scale : Scale::linear, axes.left, axes.right},
      {y_range(panel, axes.height()), panel.bars.empty() ? panel.y.scale : Scale::linear, axes.bottom, axes.top}};
  draw_y_axis(drawing, panel, chart, outer);
  draw_x_axis(drawing, panel, chart, outer);
  for (const ReferenceLine& line : panel.references) draw_reference(drawing, line, chart);
  for (const Bar& bar : panel.bars) draw_bar(drawing, bar, chart);
  for (const Series& series : panel.series) draw_series(drawing, series, chart);
  drawing.shapes.emplace_back(
      Path{.places = {{axes.left, axes.bottom}, {axes.right, axes.bottom}}, .stroke = k_axis_colour});
  draw_bar_labels(drawing, panel, chart);
}

}  // namespace tprimat::results
