#pragma once

#include <string>
#include <vector>

#include "planner/calibrate.h"
#include "text/fields.h"

namespace tprimat::planner {

// Which parameters results of one's own may move.
enum class FitScope {
  machine,  // of the machines that the results ran on alone: "<key>@machine:<machine>"
  all       // those, and of the programs and releases that ran
};

// A parameter that a fit moved.
struct MovedParameter {
  std::string name;
  double before = 0, after = 0;
  double deviation = 0;   // posterior standard deviation, relative
  double deviations = 0;  // the move, in these

  static constexpr auto fields() {
    using M = MovedParameter;
    return field_list(field("name", &M::name, "key@scope"), field("before", &M::before, "value before the fit"),
                      field("after", &M::after, "value after it"),
                      field("deviation", &M::deviation, "posterior standard deviation of ln(value)"),
                      field("deviations", &M::deviations, "the move in posterior standard deviations"));
  }
};

struct Refinement {
  ParameterSet parameters;
  std::vector<MovedParameter> moved;  // furthest first, by deviations
};

// The least squares of calibrate() about the values of `start`, for a few results of one's own, even for one. What
// holds for all machines and programs stays. A machine's own parameters begin where its architecture, or a probe of it,
// puts them, and are believed to 10 % or the spread that is left, whichever is more; a program's to a quarter of its
// spread where a fit has found them before. The results are trusted to 3 %.
Refinement refine(const ParameterSet& start, const std::vector<Observation>& observations,
                  FitScope scope = FitScope::machine);

std::string render_moved(const std::vector<MovedParameter>& moved);

}  // namespace tprimat::planner
