#pragma once

#include <string>

#include "compare/comparison.h"

namespace tprimat::cli {

// --junit and --annotations: what continuous integration reads of a comparison.
struct CiOutputs {
  std::string junit_path;
  bool annotations = false;
};
void write_ci_outputs(const results::Comparison& comparison, const CiOutputs& outputs);

}  // namespace tprimat::cli
