#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace tprimat::results {

struct ChartPoint {
  double x = 0, y = 0;
};

// Points joined in the order in which they come, or not joined.
struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;
  bool joined = true;
  bool guide = false;  // a thin grey line without points: what would be ideal
};

struct ChartPanel {
  std::string title, x_label, y_label;
  bool x_log = false, y_log = false;
  bool y_from_zero = false;
  std::string y_format;         // of gnuplot; empty: its own choice
  std::vector<double> x_ticks;  // empty: gnuplot's own choice
  std::vector<ChartSeries> series;
};

// A gnuplot script with its data inside: panels side by side under one title, one legend for all below it. Series of
// one place in their panels' lists have one colour.
std::string render_line_charts(const std::string& title, const std::string& subtitle,
                               const std::vector<ChartPanel>& panels, PlotFormat format);

}  // namespace tprimat::results
