#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "report/report.h"

namespace tprimat::results {

// Okabe and Ito's palette for colour-blind readers, its yellow (unreadable on white) replaced by grey. Dashes and
// points differ as well, so that the figure survives a black-and-white printer.
inline constexpr std::array<const char*, 8> k_plot_colours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                              "#E69F00", "#56B4E9", "#000000", "#7F7F7F"};
inline constexpr std::array<const char*, 8> k_plot_dashes = {"1", "'-'", "'-.'", "'..-'", "1", "'-'", "'-.'", "'..-'"};
inline constexpr std::array<int, 8> k_plot_points = {7, 5, 9, 13, 11, 6, 4, 8};

inline const char* plot_colour(size_t i) { return k_plot_colours[i % k_plot_colours.size()]; }
inline const char* plot_dash(size_t i) { return k_plot_dashes[i % k_plot_dashes.size()]; }
inline int plot_point(size_t i) { return k_plot_points[i % k_plot_points.size()]; }

// The first line of every script.
std::string set_plot_terminal(PlotFormat format, int width, int height);

}  // namespace tprimat::results
