#pragma once

#include <string>

#include "report/plots/drawing.h"
#include "report/plots/picture.h"

// Sizes, colours, dashes and marks of every picture.
namespace tprimat::results {

inline constexpr double k_title_size = 20, k_subtitle_size = 13, k_panel_title_size = 14, k_tick_size = 12,
                        k_note_size = 11.5, k_note_line = 15;
inline constexpr const char *k_text_colour = "#1a1a1a", *k_faint_colour = "#595959", *k_doubtful_colour = "#a63600",
                            *k_axis_colour = "#8c8c8c", *k_grid_colour = "#e6e6e6", *k_bar_end_colour = "#1a1a1a",
                            *k_background = "#ffffff";

std::string colour_of(const Look& look);
std::vector<double> dashes_of(const Look& look);

// A mark of its shape around a place; hollow from the ninth participant on, or where asked.
Shape draw_mark(const Look& look, Place at, double radius, bool is_hollow);

// A line with its mark, as a key shows it.
void draw_sample(Drawing& drawing, const Look& look, Place from, double length, bool is_dotted);

}  // namespace tprimat::results
