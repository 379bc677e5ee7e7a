#pragma once

#include <string>
#include <vector>

#include "compare/comparison.h"

namespace tprimat {

// All that is wrong with any of them at once, as one Error.
std::vector<Gate> parse_gates(const std::vector<std::string>& texts);

// --junit and --annotations: what continuous integration reads of a comparison.
struct CiOutputs {
  std::string junit_path;
  bool annotations = false;
};
void write_ci_outputs(const Comparison& comparison, const CiOutputs& outputs);

}  // namespace tprimat
