#pragma once

#include <string>
#include <variant>
#include <vector>

// A picture as shapes with their places, in points from the upper left corner. Later shapes cover earlier ones. Every
// way to a file (svg.h, draw_plot.h) draws the same shapes.
namespace tprimat::results {

struct Place {
  double x = 0, y = 0;
};

struct Path {
  std::vector<Place> places = {};
  bool is_closed = false;
  std::string fill = {}, stroke = {};  // "#0072b2"; empty: none
  double width = 1;                    // of the stroke
  std::vector<double> dashes = {};     // lengths of dash and gap; empty: solid
};

struct Disc {
  Place centre = {};
  double radius = 1;
  std::string fill = {}, stroke = {};
  double width = 1;
};

enum class Align { start, middle, end };

struct Label {
  Place at = {};  // of the baseline
  std::string text = {};
  double size = 12;
  std::string colour = {};
  Align align = Align::start;
  bool is_bold = false, is_upright = true;  // not upright: rotated, reading upwards
};

using Shape = std::variant<Path, Disc, Label>;

struct Drawing {
  double width = 0, height = 0;
  std::string title = {}, description = {};  // for those who do not see it
  std::vector<Shape> shapes = {};
};

}  // namespace tprimat::results
