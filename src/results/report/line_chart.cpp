#include "report/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/gnuplot_panels.h"
#include "report/gnuplot_style.h"

namespace tprimat::results {
namespace {

constexpr int k_chart_width = 760, k_chart_height = 640;  // of one panel
constexpr size_t k_max_level_ticks = 10;                  // more are rotated
constexpr double k_charts_share = 0.87;                   // of the height; the rest is for the titles

std::string chart_titles(const std::string& title, const std::string& subtitle) {
  return fmt::format(
      "reset\nset origin 0,{0:.3f}\nset size 1,{1:.3f}\nset margins 0,0,0,0\nunset tics\nunset border\nunset key\n"
      "set label 1 {2} at graph 0.015,0.66 left font ',17'\n"
      "set label 2 {3} at graph 0.015,0.16 left font ',11' textcolor rgb '#444444'\nplot [0:1][0:1] -1 notitle\n",
      k_charts_share, 1 - k_charts_share, quote_gnuplot(title), quote_gnuplot(subtitle));
}

std::string chart_data(const ChartPanel& panel) {
  std::string text;
  for (size_t i = 0; i < panel.series.size(); ++i) {
    text += fmt::format("$series{} << EOD\n", i);
    for (const auto& [x, y] : panel.series[i].points) text += fmt::format("{:.8g} {:.8g}\n", x, y);
    text += "EOD\n";
  }
  return text;
}

// Space above the curves for the legend.
std::string chart_y_range(const ChartPanel& panel) {
  double low = INFINITY, high = -INFINITY;
  for (const ChartSeries& series : panel.series)
    for (const auto& point : series.points) low = std::min(low, point.y), high = std::max(high, point.y);
  if (low > high) return "";
  if (panel.y_log) return fmt::format("set logscale y\nset yrange [{:.6g}:{:.6g}]\n", low / 1.5, high * 4);
  const double bottom = panel.y_from_zero ? 0 : low - 0.08 * (high - low);
  return fmt::format("set yrange [{:.6g}:{:.6g}]\n", bottom, high + 0.08 * (high - bottom));
}

std::string chart_axes(const ChartPanel& panel) {
  std::string text =
      fmt::format("set title {} font ',13' offset 0,-0.4\nset xlabel {} offset 0,0.4\nset ylabel {}\n",
                  quote_gnuplot(panel.title), quote_gnuplot(panel.x_label), quote_gnuplot(panel.y_label));
  if (panel.x_log) text += "set logscale x\n";
  text += chart_y_range(panel);
  if (!panel.y_format.empty()) text += fmt::format("set format y {}\n", quote_gnuplot(panel.y_format));
  if (panel.x_ticks.empty()) return text;
  std::string ticks;
  for (const double tick : panel.x_ticks)
    ticks += fmt::format("{}'{:.0f}' {:.8g}", ticks.empty() ? "" : ", ", tick, tick);
  return text + fmt::format("set xtics ({}){}\nset xrange [{:.8g}:{:.8g}]\n", ticks,
                            panel.x_ticks.size() > k_max_level_ticks ? " rotate by -35 left" : "",
                            panel.x_ticks.front() / 1.15, panel.x_ticks.back() * 1.15);
}

std::string draw_series(const ChartSeries& series, size_t i) {
  const std::string name = series.name.empty() ? "notitle" : "title " + quote_gnuplot(series.name);
  if (series.guide) return fmt::format("$series{} using 1:2 with lines lw 1.2 dt 3 lc rgb '#888888' {}", i, name);
  return fmt::format("$series{} using 1:2 with {} lw 2 lc rgb '{}' dt {} pt {} ps 1.1 {}", i,
                     series.joined ? "linespoints" : "points", plot_colour(i), plot_dash(i), plot_point(i), name);
}

std::string draw_chart(const ChartPanel& panel, double left, double width) {
  std::string text = chart_data(panel) + "reset\n";
  text += fmt::format("set origin {:.5f},0\nset size {:.5f},{:.3f}\n", left, width, k_charts_share);
  text +=
      "set border 3 lc rgb '#555555'\nset tics nomirror out scale 0.6\nset grid xtics ytics lc rgb '#E4E4E4' lt 1\n"
      "set lmargin 11\nset rmargin 3\nset tmargin 2.4\nset bmargin 5\nset key top left Left reverse samplen 3\n";
  text += chart_axes(panel) + "plot ";
  for (size_t i = 0; i < panel.series.size(); ++i) text += (i > 0 ? ", " : "") + draw_series(panel.series[i], i);
  return text + "\n";
}

}  // namespace

std::string render_line_charts(const std::string& title, const std::string& subtitle,
                               const std::vector<ChartPanel>& panels, PlotFormat format) {
  const auto count = static_cast<int>(panels.size());
  std::string script = set_plot_terminal(format, k_chart_width * count, k_chart_height);
  script += "set encoding utf8\nset multiplot\n" + chart_titles(title, subtitle);
  const double width = 1.0 / count;
  for (int i = 0; i < count; ++i) script += draw_chart(panels[static_cast<size_t>(i)], width * i, width);
  return script + "unset multiplot\n";
}

}  // namespace tprimat::results
