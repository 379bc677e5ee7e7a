#pragma once

#include <string>
#include <vector>

namespace tprimat::engine {

// What a GPU's operations chose where there is a choice, in this process. "own" are kernels of this program.
struct KernelReport {
  std::string attention_forward, attention_backward;  // "own", "cudnn", "cudnn-unordered"; empty: did not run yet
  std::vector<std::string> warnings;                  // not said yet; whoever says them takes them out

  // "cudnn-unordered", or "cudnn forward, own backward"; empty where none ran.
  std::string attention() const {
    const std::string &forward = attention_forward, &backward = attention_backward;
    if (backward.empty() || backward == forward) return forward;
    if (forward.empty() || (forward == "cudnn" && backward == "cudnn-unordered")) return backward;
    return forward + " forward, " + backward + " backward";
  }
};

}  // namespace tprimat::engine
