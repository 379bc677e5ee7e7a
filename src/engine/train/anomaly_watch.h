#pragma once

#include <cstdint>

#include "spec/train_spec.h"

namespace tprimat::engine {

// Looks for losses that jump. The mean runs over about fifty steps and does not take in spikes.
class AnomalyWatch {
 public:
  explicit AnomalyWatch(const AnomalySpec& spec) : spec_(spec) {}

  // Whether the loss is above spike_factor times the running mean of those before it; then it joins the mean, or not.
  // The first ten losses are never spikes.
  bool is_spike(double loss);

  double mean() const { return mean_; }
  int64_t losses() const { return losses_; }
  void restore(double mean, int64_t losses) { mean_ = mean, losses_ = losses; }

 private:
  AnomalySpec spec_;
  double mean_ = 0;
  int64_t losses_ = 0;
};

}  // namespace tprimat::engine
