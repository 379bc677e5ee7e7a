#pragma once

#include <string>
#include <string_view>

#include "report/plots/drawing.h"

// The same shapes in three languages.
namespace tprimat::results {

// An SVG document, complete in itself.
std::string render_svg(const Drawing& drawing);

// A gnuplot script that writes a PNG to gnuplot's standard output. Needs gnuplot 5.2 or newer with the terminal
// pngcairo.
std::string render_gnuplot(const Drawing& drawing);

// JSON for plots/draw.py, which draws it with matplotlib.
std::string render_shapes(const Drawing& drawing);

// draw.py itself: `python3 draw.py SHAPES.json IMAGE.png`; its exit status is k_no_matplotlib where matplotlib is
// missing.
std::string_view matplotlib_script();
inline constexpr int k_no_matplotlib = 77;

inline constexpr double k_png_scale = 1.5;  // pixels per point

// For gnuplot: in single quotes, in which it has neither escapes nor substitution. A quote of the text is a string of
// its own: gnuplot 5.4 misreads a doubled one at the beginning.
std::string quote_gnuplot(const std::string& text);

}  // namespace tprimat::results
