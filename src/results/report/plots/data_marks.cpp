#include "report/plots/data_marks.h"

#include <algorithm>
#include <array>

#include "report/plots/style.h"

namespace tprimat::results {
namespace {

constexpr double k_line_width = 1.8, k_reference_width = 1.1, k_mark_radius = 3.2, k_cap = 5;

// The part of a line inside the axes (Liang and Barsky).
std::optional<std::array<Place, 2>> clip(Place a, Place b, const Box& box) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  double begin = 0, end = 1;
  for (const auto& [step, distance] : std::to_array<std::pair<double, double>>(
           {{-dx, a.x - box.left}, {dx, box.right - a.x}, {-dy, a.y - box.top}, {dy, box.bottom - a.y}})) {
    if (step == 0 && distance < 0) return std::nullopt;
    if (step < 0) begin = std::max(begin, distance / step);
    if (step > 0) end = std::min(end, distance / step);
  }
  if (begin > end) return std::nullopt;
  return std::array<Place, 2>{{{a.x + begin * dx, a.y + begin * dy}, {a.x + end * dx, a.y + end * dy}}};
}

std::optional<Place> place_of(const Point& point, const Chart& chart) {
  if (!is_drawable(point.x, chart.x.scale) || !is_drawable(point.y, chart.y.scale)) return std::nullopt;
  return Place{chart.x(point.x), chart.y(point.y)};
}

// One path per unbroken part.
void add_lines(Drawing& drawing, const std::vector<std::optional<Place>>& places, const Box& box, const Path& style) {
  Path path = style;
  const auto finish = [&] {
    if (path.places.size() > 1) drawing.shapes.emplace_back(path);
    path.places.clear();
  };
  for (size_t i = 1; i < places.size(); ++i) {
    const auto part = places[i - 1] && places[i] ? clip(*places[i - 1], *places[i], box) : std::nullopt;
    const bool continues =
        part && !path.places.empty() && path.places.back().x == (*part)[0].x && path.places.back().y == (*part)[0].y;
    if (!continues) finish();
    if (!part) continue;
    if (!continues) path.places.push_back((*part)[0]);
    path.places.push_back((*part)[1]);
  }
  finish();
}

double clamp_y(double value, const Chart& chart) {
  return std::clamp(chart.y(value), chart.axes.top, chart.axes.bottom);
}

void draw_interval(Drawing& drawing, const Bar& bar, const Chart& chart) {
  if (!is_drawable(bar.low) || !is_drawable(bar.high)) return;
  const double x = chart.x(bar.at), low = clamp_y(bar.low, chart), high = clamp_y(bar.high, chart);
  for (const auto& ends : {std::array<Place, 2>{{{x, low}, {x, high}}},
                           {{{x - k_cap, low}, {x + k_cap, low}}},
                           {{{x - k_cap, high}, {x + k_cap, high}}}})
    drawing.shapes.emplace_back(Path{.places = {ends[0], ends[1]}, .stroke = k_bar_end_colour, .width = 1.5});
}

// All of a short series, else eight, at other places than those of the next series; and each point without a neighbour.
bool is_marked(const Series& series, const std::vector<std::optional<Place>>& places, size_t i) {
  constexpr size_t k_all = 16, k_some = 8;
  if (series.marks == Marks::none) return false;
  if (series.marks != Marks::some || places.size() <= k_all) return true;
  const size_t stride = places.size() / k_some;
  if ((i + series.look.index * stride / 3) % stride == stride / 2) return true;
  return (i == 0 || !places[i - 1]) && (i + 1 == places.size() || !places[i + 1]);
}

}  // namespace

double bar_slot(const Panel& panel, const Chart& chart) {
  std::vector<double> places;
  for (const Bar& bar : panel.bars) places.push_back(chart.x(bar.at));
  std::ranges::sort(places);
  double slot = chart.axes.width();
  for (size_t i = 1; i < places.size(); ++i) slot = std::min(slot, places[i] - places[i - 1]);
  return slot;
}

void draw_bar(Drawing& drawing, const Bar& bar, const Chart& chart) {
  if (!is_drawable(bar.value)) return;
  const double left = chart.x(bar.at - bar.width / 2), right = chart.x(bar.at + bar.width / 2);
  const double from = clamp_y(bar.from, chart), to = clamp_y(bar.value, chart);
  drawing.shapes.emplace_back(Path{.places = {{left, from}, {left, to}, {right, to}, {right, from}},
                                   .is_closed = true,
                                   .fill = colour_of(bar.look)});
  draw_interval(drawing, bar, chart);
}

void draw_series(Drawing& drawing, const Series& series, const Chart& chart) {
  std::vector<std::optional<Place>> places;
  for (const Point& point : series.points) places.push_back(place_of(point, chart));
  if (series.has_line) {
    Path style{.stroke = colour_of(series.look), .width = series.look.is_grey ? k_reference_width : k_line_width};
    style.dashes = series.is_dotted ? std::vector<double>{2, 3} : dashes_of(series.look);
    add_lines(drawing, places, chart.axes, style);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    if (!places[i]) continue;
    const Point& point = series.points[i];
    if (is_marked(series, places, i) && chart.x.contains(point.x) && chart.y.contains(point.y))
      drawing.shapes.push_back(draw_mark(series.look, *places[i], k_mark_radius, series.marks == Marks::hollow));
  }
}

void draw_reference(Drawing& drawing, const ReferenceLine& line, const Chart& chart) {
  const auto settle = [](double value, const AxisMap& map) {
    return std::isinf(value) ? (value > 0 ? map.range.high : map.range.low) : value;
  };
  const Point from{settle(line.x, chart.x), settle(line.y, chart.y)},
      to{settle(line.to_x, chart.x), settle(line.to_y, chart.y)};
  Path style{.stroke = line.look ? colour_of(*line.look) : k_axis_colour, .width = k_reference_width};
  if (line.is_dashed) style.dashes = {3, 3};
  add_lines(drawing, {place_of(from, chart), place_of(to, chart)}, chart.axes, style);
}

}  // namespace tprimat::results
