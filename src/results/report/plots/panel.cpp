#include "report/plots/panel.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/plots/chart.h"
#include "report/plots/style.h"
#include "report/plots/text_width.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

constexpr double k_title_line = 20, k_key_line = 19, k_axes_gap = 8, k_sample = 28, k_sample_gap = 7;
constexpr size_t k_max_note_lines = 2;

// The names of the series, above the axes.
struct NamedSample {
  const Series* series = nullptr;
  std::string name;
  double x = 0;
  size_t row = 0;
};

struct SeriesKey {
  std::vector<NamedSample> samples;
  size_t rows = 0, hidden = 0;
};

SeriesKey arrange_key(const Panel& panel, double width) {
  constexpr size_t k_max_rows = 3;
  constexpr double k_gap = 20, k_rest = 100;  // kept for "and 3 more"
  SeriesKey key;
  double x = 0;
  for (const Series& series : panel.series) {
    if (series.name.empty()) continue;
    const std::string name = fit_text(printable(series.name), k_tick_size, (width - k_sample - k_gap) / 2);
    const double wide = k_sample + k_sample_gap + text_width(name, k_tick_size) + k_gap;
    if (key.rows == 0 || x + wide > width - (key.rows == k_max_rows ? k_rest : 0)) ++key.rows, x = 0;
    if (key.rows > k_max_rows)
      ++key.hidden;
    else
      key.samples.push_back({&series, name, x, key.rows - 1});
    x += wide;
  }
  key.rows = std::min(key.rows, k_max_rows);
  return key;
}

void draw_series_key(Drawing& drawing, const Panel& panel, const Box& outer, double top) {
  const SeriesKey key = arrange_key(panel, outer.width());
  for (const NamedSample& sample : key.samples) {
    const double x = outer.left + sample.x, y = top + k_key_line * (static_cast<double>(sample.row) + 0.7);
    draw_sample(drawing, sample.series->look, {x, y - 4}, k_sample, sample.series->is_dotted);
    add_text(drawing, {{x + k_sample + k_sample_gap, y}, sample.name, k_tick_size, k_text_colour}, outer.width());
  }
  if (key.hidden == 0) return;
  add_text(drawing,
           {{outer.right, top + k_key_line * (static_cast<double>(key.rows) - 0.3)},
            fmt::format("and {} more", key.hidden),
            k_tick_size,
            k_faint_colour,
            Align::end},
           100);
}

// A key alone: few entries get more lines of details.
void draw_key(Drawing& drawing, const Panel& panel, const Box& box) {
  constexpr double k_min_height = 34, k_max_height = 72, k_name_line = 20, k_detail_line = 15;
  const auto capacity = static_cast<size_t>(std::max(1.0, (box.height() - k_detail_line) / k_min_height));
  const size_t shown = std::min(panel.key.size(), capacity), rest = panel.key.size() - shown + panel.key_rest;
  const double height = std::min(k_max_height, (box.height() - k_detail_line) / static_cast<double>(shown));
  const auto lines = static_cast<size_t>(std::max(1.0, (height - k_name_line) / k_detail_line));
  const double left = box.left + k_sample + 10, width = box.right - left;
  for (size_t i = 0; i < shown; ++i) {
    const KeyEntry& entry = panel.key[i];
    double y = box.top + height * static_cast<double>(i) + k_subtitle_size;
    draw_sample(drawing, entry.look, {box.left, y - 4.5}, k_sample, false);
    add_text(drawing, {{left, y}, entry.name, k_subtitle_size, k_text_colour}, width);
    for (const std::string& line : wrap_text(printable(entry.details), k_note_size, width, lines))
      add_text(drawing, {{left, y += k_detail_line}, line, k_note_size, k_faint_colour}, width);
  }
  if (rest > 0)
    add_text(drawing, {{left, box.bottom}, fmt::format("and {} more", rest), k_note_size, k_faint_colour}, width);
}

}  // namespace

void add_text(Drawing& drawing, Label text, double width) {
  text.text = fit_text(printable(text.text), text.size, width, text.is_bold);
  if (!text.text.empty()) drawing.shapes.emplace_back(std::move(text));
}

double space_above(const Panel& panel, double width) {
  const size_t notes = wrap_text(printable(panel.note), k_note_size, width, k_max_note_lines).size();
  return k_title_line + k_note_line * static_cast<double>(notes) + k_axes_gap +
         k_key_line * static_cast<double>(arrange_key(panel, width).rows);
}

double space_below(const Panel& panel) {
  constexpr double k_labels = 22, k_title = 20;
  if (!panel.message.empty() || !panel.key.empty()) return 0;
  return k_labels + (label_of(panel.x).empty() ? 0 : k_title);
}

double space_left(const Panel& panel, double height) {
  constexpr double k_gap = 8, k_title = 20;
  if (!panel.message.empty() || !panel.key.empty()) return 0;
  double widest = 0;
  for (const std::string& label : y_ticks(panel, height).labels)
    widest = std::max(widest, text_width(label, k_tick_size));
  return widest + k_gap + (label_of(panel.y).empty() ? 0 : k_title);
}

void draw_panel(Drawing& drawing, const Panel& panel, const Box& outer, const Box& axes) {
  double y = outer.top + k_panel_title_size;
  add_text(drawing, {{outer.left, y}, panel.title, k_panel_title_size, k_text_colour, Align::start, true},
           outer.width());
  for (const std::string& line : wrap_text(printable(panel.note), k_note_size, outer.width(), k_max_note_lines))
    add_text(drawing, {{outer.left, y += k_note_line}, line, k_note_size, k_faint_colour}, outer.width());
  draw_series_key(drawing, panel, outer, y + 6);
  if (!panel.message.empty())
    return add_text(drawing,
                    {{(outer.left + outer.right) / 2, (axes.top + axes.bottom) / 2},
                     panel.message,
                     k_subtitle_size,
                     k_faint_colour,
                     Align::middle},
                    outer.width());
  if (!panel.key.empty()) return draw_key(drawing, panel, {outer.left, y + 12, outer.right, outer.bottom});
  draw_chart(drawing, panel, outer, axes);
}

}  // namespace tprimat::results
