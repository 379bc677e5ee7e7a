#pragma once

#include <span>
#include <string>
#include <string_view>

#include "result/run_result.h"

namespace tprimat::results {

// Two published measurements of one training on the same devices with the same batch, sequence length and precision:
// with equal load forced on all experts, and with learned routing. Rates are in one unit, tokens/s or TFLOP/s per
// device.
struct BalancedPair {
  std::string_view model, device;
  int devices = 0, sequence_length = 0;
  std::string_view precision;
  double balanced = 0, learned = 0;
  std::string_view source;
  double gain() const { return balanced / learned - 1; }
};
std::span<const BalancedPair> balanced_pairs();

// "in 7 published pairs forced balance was 9 to 90 % faster (50 to 90 % for this model)"
std::string describe_published_gain(const RunResult& run);

}  // namespace tprimat::results
