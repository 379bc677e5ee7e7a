#pragma once

#include <string>

#include "report/plots/axis.h"
#include "report/plots/drawing.h"
#include "report/plots/panel.h"
#include "report/plots/picture.h"

namespace tprimat::results {

// "step time, s"
std::string label_of(const Axis& axis);

// For axes of that height.
AxisTicks y_ticks(const Panel& panel, double height);

// Axes, grid, labels, bars and series.
void draw_chart(Drawing& drawing, const Panel& panel, const Box& outer, const Box& axes);

}  // namespace tprimat::results
