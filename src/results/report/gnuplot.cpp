#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/printable.h"
#include "compare/compare_runs.h"
#include "report/figures.h"
#include "report/gnuplot_panels.h"
#include "report/gnuplot_style.h"
#include "report/report.h"
#include "report/wrap.h"

namespace tprimat::results {
namespace {

constexpr int k_band_width = 1600, k_band_height = 1000;

// One pair speaks for itself; of many only the counts fit over a figure.
std::string subtitle(const Comparison& comparison, const ModelGroup& group) {
  if (group.pairs.empty()) return "one participant: nothing to compare";
  if (group.pairs.size() == 1) return headline(comparison, group, group.pairs.front());
  return count_verdicts(group);
}

bool all_comparable(const ModelGroup& group) {
  return std::all_of(group.pairs.begin(), group.pairs.end(), [](const Pair& pair) { return pair.comparable; });
}

// A panel of its own: every panel starts from a clean slate, labels included.
std::string plot_titles(const Comparison& comparison, const ModelGroup& group, const Frame& frame) {
  constexpr size_t k_columns = 175, k_lines = 2;
  std::vector<std::string> lines = wrap_words(subtitle(comparison, group), k_columns);
  if (lines.size() > k_lines) {
    lines.resize(k_lines);
    lines.back() = shorten(lines.back(), k_columns - 2) + " …";
  }
  std::string script = fmt::format(
      "reset\nset origin {:.5f},{:.5f}\nset size {:.5f},{:.5f}\nset margins 0,0,0,0\nunset tics\nunset border\nunset "
      "key\n"
      "set label 1 {} at graph 0.012,0.72 left font ',19'\n",
      frame.left, frame.bottom, frame.width, frame.height, quote_gnuplot(shorten(group.model, 60)));
  for (size_t i = 0; i < lines.size(); ++i)
    script += fmt::format("set label {} {} at graph 0.012,{:.2f} left font ',12' textcolor rgb '{}'\n", 2 + i,
                          quote_gnuplot(lines[i]), 0.38 - 0.23 * static_cast<double>(i),
                          all_comparable(group) ? "#222222" : "#B03A00");
  return script + "plot [0:1][0:1] -1 notitle\n";
}

// More curves than this are a smear.
ModelGroup first_contenders(const ModelGroup& group) {
  constexpr size_t k_max_curves = 40;
  ModelGroup first{group.model, {}, {}};
  for (size_t i = 0; i < std::min(group.contenders.size(), k_max_curves); ++i)
    first.contenders.push_back(group.contenders[i]);
  return first;
}

std::string plot_group(const Comparison& comparison, const ModelGroup& group, const Frame& band) {
  constexpr double k_panels = 0.905;  // of the band's height; the rest is for titles
  using Panel = std::string (*)(const ModelGroup&, const Frame&);
  constexpr std::array<Panel, 6> k_grid = {plot_throughput, plot_step_times,     plot_losses,
                                           plot_memory,     plot_learning_rates, plot_legend};
  const double width = band.width / 3, height = band.height * k_panels / 2;
  std::string script =
      plot_titles(comparison, group, {band.left, band.bottom + 2 * height, band.width, band.height * (1 - k_panels)});
  const ModelGroup shown = first_contenders(group);
  for (size_t i = 0; i < k_grid.size(); ++i) {
    const double left = band.left + width * static_cast<double>(i % 3);
    const double bottom = band.bottom + height * (i < 3 ? 1 : 0);
    script += k_grid[i](shown, {left, bottom, width, height});
  }
  return script;
}

}  // namespace

std::string set_plot_terminal(PlotFormat format, int width, int height) {
  const bool png = format == PlotFormat::png;
  return fmt::format("set terminal {} noenhanced font 'DejaVu Sans,{}' background rgb 'white' size {},{}\n",
                     png ? "pngcairo" : "svg", png ? 11 : 13, width, height);
}

std::string quote_gnuplot(const std::string& text) {
  std::string quoted = "'";
  for (const char c : printable(text)) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + '\'';
}

std::string render_gnuplot(const Comparison& comparison, PlotFormat format) {
  const auto bands = std::max<size_t>(1, comparison.groups.size());
  std::string script = set_plot_terminal(format, k_band_width, k_band_height * static_cast<int>(bands));
  script += "set encoding utf8\nset multiplot\n";
  const double height = 1.0 / static_cast<double>(bands);
  for (size_t i = 0; i < comparison.groups.size(); ++i)
    script += plot_group(comparison, comparison.groups[i], {0, 1 - height * static_cast<double>(i + 1), 1, height});
  return script + "unset multiplot\n";
}

}  // namespace tprimat::results
