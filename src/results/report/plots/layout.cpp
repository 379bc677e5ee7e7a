#include "report/plots/layout.h"

#include <algorithm>

#include "report/plots/panel.h"
#include "report/plots/style.h"
#include "report/plots/text_width.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

constexpr double k_margin = 24, k_column_gap = 36, k_row_gap = 26, k_section_gap = 34, k_footnote_gap = 8;

// Title and subtitle; returns where they end.
double draw_header(Drawing& drawing, const Section& section, double top) {
  constexpr double k_line = 19, k_below = 20;
  constexpr size_t k_max_lines = 3;
  const double width = drawing.width - 2 * k_margin;
  double y = top;
  if (!section.title.empty()) {
    y += k_title_size;
    add_text(drawing, {{k_margin, y}, section.title, k_title_size, k_text_colour, Align::start, true}, width);
    y += 6;
  }
  for (const std::string& line : wrap_text(printable(section.subtitle), k_subtitle_size, width, k_max_lines)) {
    y += k_line;
    add_text(drawing, {{k_margin, y}, line, k_subtitle_size, section.is_doubtful ? k_doubtful_colour : k_faint_colour},
             width);
  }
  return y == top ? top : y + k_below;
}

// Space around the axes of the panels: equal above and below in a row, and on the left in a column.
struct Grid {
  double panel_width = 0;
  std::vector<double> above, below, left;
};

Grid measure(const Section& section, double width) {
  const size_t columns = std::max<size_t>(1, section.columns);
  const size_t rows = (section.panels.size() + columns - 1) / columns;
  const auto gaps = static_cast<double>(columns - 1);
  Grid grid{(width - 2 * k_margin - gaps * k_column_gap) / static_cast<double>(columns), {}, {}, {}};
  grid.above.resize(rows), grid.below.resize(rows), grid.left.resize(columns);
  for (size_t i = 0; i < section.panels.size(); ++i) {
    double &above = grid.above[i / columns], &below = grid.below[i / columns];
    above = std::max(above, space_above(section.panels[i], grid.panel_width));
    below = std::max(below, space_below(section.panels[i]));
  }
  for (size_t i = 0; i < section.panels.size(); ++i) {
    const double height = section.panel_height - grid.above[i / columns] - grid.below[i / columns];
    grid.left[i % columns] = std::max(grid.left[i % columns], space_left(section.panels[i], height));
  }
  return grid;
}

double draw_section(Drawing& drawing, const Section& section, double top) {
  constexpr double k_right = 10;  // of a label that is centred on the axis' end
  top = draw_header(drawing, section, top);
  const Grid grid = measure(section, drawing.width);
  const size_t columns = grid.left.size();
  for (size_t i = 0; i < section.panels.size(); ++i) {
    const size_t row = i / columns, column = i % columns;
    const double left = k_margin + static_cast<double>(column) * (grid.panel_width + k_column_gap);
    const double y = top + static_cast<double>(row) * (section.panel_height + k_row_gap);
    const Box outer{left, y, left + grid.panel_width, y + section.panel_height};
    const Box axes{outer.left + std::min(grid.left[column], 0.6 * grid.panel_width), outer.top + grid.above[row],
                   outer.right - k_right, outer.bottom - grid.below[row]};
    draw_panel(drawing, section.panels[i], outer, axes);
  }
  const auto rows = static_cast<double>(grid.above.size());
  return top + rows * (section.panel_height + k_row_gap) - k_row_gap;
}

// "tokens/s per device: A 11 297, B 10 231"
std::string describe_panel(const Panel& panel) {
  constexpr size_t k_max_bars = 20;
  std::vector<std::string> parts;
  if (!panel.note.empty()) parts.push_back(panel.note);
  if (!panel.message.empty()) parts.push_back(panel.message);
  if (panel.bars.size() <= k_max_bars && panel.bars.size() == panel.bar_names.size())
    for (size_t i = 0; i < panel.bars.size(); ++i) parts.push_back(panel.bar_names[i].name + " " + panel.bars[i].label);
  for (const KeyEntry& entry : panel.key) parts.push_back(entry.name);
  const std::string axis = panel.y.title + (panel.y.unit.empty() ? "" : ", " + panel.y.unit);
  const std::string& title = panel.title.empty() ? axis : panel.title;
  return title + (parts.empty() || title.empty() ? "" : ": ") + join(parts, ", ");
}

}  // namespace

Drawing lay_out(const Picture& picture) {
  Drawing drawing;
  drawing.width = picture.width;
  double y = k_margin;
  std::vector<std::string> titles, sentences;
  for (const Section& section : picture.sections) {
    y = draw_section(drawing, section, y) + k_section_gap;
    if (!section.title.empty()) titles.push_back(printable(section.title));
    if (!section.subtitle.empty()) sentences.push_back(printable(section.subtitle));
    for (const Panel& panel : section.panels) sentences.push_back(printable(describe_panel(panel)));
  }
  y -= picture.sections.empty() ? 0 : k_section_gap - k_footnote_gap;
  for (const std::string& line : wrap_text(printable(picture.footnote), k_note_size, picture.width - 2 * k_margin, 3)) {
    y += k_note_line;
    add_text(drawing, {{k_margin, y}, line, k_note_size, k_faint_colour}, picture.width - 2 * k_margin);
  }
  drawing.height = std::ceil(y + k_margin);
  drawing.title = join(titles, ", ");
  for (const std::string& each : sentences)
    drawing.description += (drawing.description.empty() ? "" : drawing.description.ends_with('.') ? " " : "; ") + each;
  return drawing;
}

}  // namespace tprimat::results
