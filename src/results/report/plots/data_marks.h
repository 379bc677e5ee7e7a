#pragma once

#include "report/plots/axis.h"
#include "report/plots/drawing.h"
#include "report/plots/panel.h"
#include "report/plots/picture.h"

// Bars, curves and lines between the axes; what lies beyond them is clipped.
namespace tprimat::results {

struct Chart {
  Box axes;
  AxisMap x, y;
};

// Width of the page between neighbouring bars.
double bar_slot(const Panel& panel, const Chart& chart);

void draw_bar(Drawing& drawing, const Bar& bar, const Chart& chart);
void draw_series(Drawing& drawing, const Series& series, const Chart& chart);
void draw_reference(Drawing& drawing, const ReferenceLine& line, const Chart& chart);

}  // namespace tprimat::results
