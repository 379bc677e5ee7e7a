#pragma once

#include <string>
#include <vector>

namespace tprimat::results {

// A linear axis: its ends, and three to nine round values between them. Each label has the digits that tell it from its
// neighbours, so that no two are alike.
struct AxisTicks {
  double low = 0, high = 1;
  std::vector<double> at;
  std::vector<std::string> labels;
};

// For values from `least` to `most`, with space around them. A constant gets an axis of a few percent around it.
AxisTicks choose_ticks(double least, double most);

}  // namespace tprimat::results
