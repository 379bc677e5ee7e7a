#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace tprimat::results {

// For gnuplot: in single quotes, in which it has neither escapes nor substitution.
std::string quote_gnuplot(const std::string& text);

// Position of a panel on the canvas, in gnuplot's screen coordinates (0..1, from the bottom).
struct Frame {
  double left = 0, bottom = 0, width = 1, height = 1;
};

// The whole picture: points, and sizes of the letters.
struct Canvas {
  int width = 0, height = 0, png_font = 11, svg_font = 13;
};

// A gnuplot script that writes its image to gnuplot's standard output: variables and data, each time followed by the
// commands of plots/*.gp that draw them. Unknown numbers are NaN.
class PlotScript {
 public:
  PlotScript(PlotFormat format, const Canvas& canvas);

  void set(const char* name, double value);
  void set(const char* name, const std::string& text);
  void set(const char* name, const std::vector<double>& list);  // an array, which must not be empty
  void set(const char* name, const std::vector<std::string>& list);
  void set_block(const std::string& name, const std::string& rows);  // $name

  // `note`: small, in the upper right corner.
  void begin_panel(const Frame& frame, const std::string& title, const std::string& note = "");
  void draw(std::string_view commands) { text_ += commands; }

  std::string finish() && { return std::move(text_) + "unset multiplot\n"; }

 private:
  std::string text_;
};

}  // namespace tprimat::results
