#pragma once

#include <optional>

#include "report/plots/axis.h"
#include "report/plots/drawing.h"
#include "report/plots/picture.h"

// One panel of a row. The row aligns the axes of its panels: it asks each for the space that it needs around them.
namespace tprimat::results {

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
  double width() const { return right - left; }
  double height() const { return bottom - top; }
};

// Height of its title, note and key, for a panel of that width.
double space_above(const Panel& panel, double width);

// Height of the labels and the title of its x axis.
double space_below(const Panel& panel);

// Width of the labels and the title of its y axis, for axes of that height.
double space_left(const Panel& panel, double height);

// `outer`: the whole panel. `axes`: the part between its axes.
void draw_panel(Drawing& drawing, const Panel& panel, const Box& outer, const Box& axes);

// Adds text, printable, as much of it as fits into `width`.
void add_text(Drawing& drawing, Label text, double width);

}  // namespace tprimat::results
