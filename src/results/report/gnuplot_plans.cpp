#include "report/gnuplot_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/gnuplot_panels.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

constexpr size_t k_columns = 3;
constexpr int k_panel_width = 330, k_panel_height = 290;

struct ComparedRates {
  std::vector<double> published, predicted;
};

ComparedRates drawable_rates(const planner::PlannedTable& table) {
  ComparedRates rates;
  for (const planner::PlannedRow& row : table.rows)
    if (row.published && row.predicted && *row.published > 0 && *row.predicted > 0 && *row.published < 1e30 &&
        *row.predicted < 1e30)
      rates.published.push_back(*row.published), rates.predicted.push_back(*row.predicted);
  return rates;
}

std::string begin_plan_panel(size_t index, size_t rows, const std::string& title) {
  const double width = 1.0 / k_columns, height = 1.0 / static_cast<double>(rows);
  const auto row = static_cast<double>(index / k_columns), column = static_cast<double>(index % k_columns);
  return fmt::format(
      "reset\nset origin {:.5f},{:.5f}\nset size {:.5f},{:.5f}\nset title {} font ',9' offset 0,-0.5\n"
      "set border 3 lc rgb '#555555'\nset tics nomirror out scale 0.6\nset grid lc rgb '#E4E4E4' lt 1\nunset key\n"
      "set lmargin 9\nset rmargin 2\nset tmargin 2.2\nset bmargin 3.4\n",
      column * width, 1 - (row + 1) * height, width, height, quote_gnuplot(title));
}

std::string data_block(const std::string& name, const std::vector<double>& x, const std::vector<double>& y) {
  std::string text = "$" + name + " << EOD\n";
  for (size_t i = 0; i < x.size(); ++i) text += fmt::format("{:.6g} {:.6g}\n", x[i], y[i]);
  return text + "EOD\n";
}

std::string plot_rates(size_t index, size_t rows, const planner::PlannedTable& table) {
  const ComparedRates rates = drawable_rates(table);
  std::string title = printable(table.table);
  for (const planner::PlanErrors& errors : table.errors)
    if (errors.of == "all")
      title += fmt::format(" ({}): median {}, P90 {}", errors.rows, format_percent(errors.median),
                           format_percent(errors.p90));
  std::string script = begin_plan_panel(index, rows, title);
  if (rates.published.empty())
    return script +
           "unset tics\nset border 0\nset label 1 'nothing predicted' at graph 0.5,0.5 center\nplot "
           "[0:1][0:1] -1 notitle\n";
  const auto [low, high] = std::minmax_element(rates.published.begin(), rates.published.end());
  const double from = *low / 1.6, to = *high * 1.6;
  script += data_block(fmt::format("rates{}", index), rates.published, rates.predicted);
  return script +
         fmt::format(
             "set logscale xy\nset format xy '%.0s%c'\nset xlabel 'published tokens/s per GPU' offset 0,0.5\n"
             "set ylabel 'predicted' offset 1.5,0\n"
             "plot [{0:.6g}:{1:.6g}][{0:.6g}:{1:.6g}] x with lines lc rgb '#555555' lw 1, 1.25*x with lines lc "
             "rgb '#AAAAAA' dt '-', x/1.25 with lines lc rgb '#AAAAAA' dt '-', $rates{2} with points pt 7 ps "
             "0.55 lc rgb '#0072B2'\n",
             from, to, index);
}

std::string plot_error_shares(size_t index, size_t rows, const std::vector<planner::PlannedTable>& tables) {
  std::vector<double> errors, shares;
  for (const planner::PlannedTable& table : tables)
    for (const planner::PlannedRow& row : table.rows)
      if (row.error) errors.push_back(100 * std::fabs(*row.error));
  std::sort(errors.begin(), errors.end());
  for (size_t i = 0; i < errors.size(); ++i)
    shares.push_back(100 * static_cast<double>(i + 1) / static_cast<double>(errors.size()));
  std::string script = begin_plan_panel(index, rows, fmt::format("all {} rows", errors.size()));
  if (errors.empty()) return script + "plot [0:1][0:1] -1 notitle\n";
  script += data_block("shares", errors, shares);
  return script +
         "set xlabel 'error of the step time, %' offset 0,0.5\nset ylabel '% of rows with no larger one' offset "
         "1.5,0\nset arrow 1 from 10,0 to 10,100 nohead lc rgb '#AAAAAA' dt '-'\nset arrow 2 from 25,0 to 25,100 "
         "nohead "
         "lc rgb '#AAAAAA' dt '-'\nplot [0:50][0:100] $shares with steps lc rgb '#D55E00' lw 2\n";
}

}  // namespace

std::string render_plan_plot(const std::vector<planner::PlannedTable>& tables, PlotFormat format) {
  const size_t panels = tables.size() + 1, rows = (panels + k_columns - 1) / k_columns;
  std::string script = format == PlotFormat::png
                           ? "set terminal pngcairo noenhanced font 'DejaVu Sans,8' background rgb 'white' size "
                           : "set terminal svg noenhanced font 'DejaVu Sans,9' background rgb 'white' size ";
  script += fmt::format("{},{}\nset encoding utf8\nset multiplot\n", k_panel_width * static_cast<int>(k_columns),
                        k_panel_height * static_cast<int>(rows));
  for (size_t i = 0; i < tables.size(); ++i) script += plot_rates(i, rows, tables[i]);
  return script + plot_error_shares(tables.size(), rows, tables) + "unset multiplot\n";
}

}  // namespace tprimat::results
