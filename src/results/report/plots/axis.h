#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/plots/picture.h"

namespace tprimat::results {

// The ends of an axis, and round values between them. Each label has the digits that tell it from its neighbours.
struct AxisTicks {
  double low = 0, high = 1;
  std::vector<double> at;
  std::vector<std::string> labels;
};

// Linear, for values from `least` to `most`, with space around them: at most `max_steps` + 1 ticks, with as many steps
// three at least. A constant gets an axis of a few percent around it.
AxisTicks choose_ticks(double least, double most, int max_steps = 8);

// Whether a number has a place on an axis.
bool is_drawable(double value, Scale scale = Scale::linear);

struct Range {
  double low = INFINITY, high = -INFINITY;
  void include(double value, Scale scale);  // if it is drawable
  bool is_empty() const { return low > high; }
};

// The ends that the axis asks for, or those of the data with space around them.
Range choose_range(const Axis& axis, const Range& data);

// The densest ticks that `fits` accepts, or a single one.
AxisTicks choose_ticks(const Axis& axis, const Range& range, const std::function<bool(const AxisTicks&)>& fits);

// From values to places on the page: finite ones, also of values beyond the ends.
struct AxisMap {
  Range range;
  Scale scale = Scale::linear;
  double from = 0, to = 1;  // on the page
  double operator()(double value) const;
  bool contains(double value) const;
};

}  // namespace tprimat::results
