#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

// What a plot shows, without a coordinate of the page: layout.h places it. Any number may be NaN or infinite and any
// text hostile or long; what cannot be drawn is left out.
namespace tprimat::results {

enum class Scale { linear, logarithmic };

struct Axis {
  std::string title = {}, unit = {};  // "step time", "s"
  Scale scale = Scale::linear;
  std::optional<double> low = {}, high = {};  // its ends; absent: from the data
  std::vector<double> ticks = {};             // absent: round values
  bool is_whole = false;                      // only whole numbers are labelled
  bool has_grid = false;
};

// Colour, dashes and marks of the nth participant, the same in every panel; grey for what is no participant.
struct Look {
  size_t index = 0;
  bool is_grey = false;
};

struct Point {
  double x = NAN, y = NAN;
};

enum class Marks { none, some, all, hollow };

struct Series {
  std::string name = {};  // in the key of its panel; empty: not there
  Look look = {};
  std::vector<Point> points = {};  // a point that cannot be drawn breaks the line
  bool has_line = true;
  Marks marks = Marks::some;
  bool is_dotted = false;
};

// On a linear axis that begins at 0, or at its `low`: from `from` to `value`. `low` and `high`: its interval. Its
// labels stand over it: the second below the first.
struct Bar {
  double at = 0, width = 0.6, value = NAN, low = NAN, high = NAN;
  Look look = {};
  std::string label = {}, second_label = {};
  double from = 0;
};

struct BarName {
  double at = 0;
  std::string name = {};
};

// From one point of the axes to another; an infinite coordinate is an end of the axis.
struct ReferenceLine {
  double x = 0, y = 0, to_x = 0, to_y = 0;
  bool is_dashed = true;
  std::optional<Look> look = {};
};

struct KeyEntry {
  Look look = {};
  std::string name = {}, details = {};  // the details are wrapped
};

// Axes with what is drawn between them; or a key alone; or, where nothing can be drawn, a message.
struct Panel {
  std::string title = {}, note = {}, message = {};
  Axis x = {}, y = {};
  std::vector<BarName> bar_names = {};  // instead of the ticks of x
  std::vector<Bar> bars = {};
  std::vector<Series> series = {};
  std::vector<ReferenceLine> references = {};
  std::vector<KeyEntry> key = {};
  size_t key_rest = 0;  // participants without an entry
};

// Panels in rows, below a title.
struct Section {
  std::string title = {}, subtitle = {};
  bool is_doubtful = false;  // the subtitle warns
  size_t columns = 3;
  double panel_height = 300;
  std::vector<Panel> panels = {};
};

struct Picture {
  double width = 1200;
  std::vector<Section> sections = {};
  std::string footnote = {};
};

}  // namespace tprimat::results
