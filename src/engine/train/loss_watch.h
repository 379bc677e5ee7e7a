#pragma once

#include <cstdint>

#include "spec/train_spec.h"

namespace tprimat::engine {

// The dynamic loss scale of fp16 (see LossScaleSpec); 1 for ever in other formats.
class LossScale {
 public:
  LossScale(const LossScaleSpec& spec, bool dynamic)
      : spec_(spec), dynamic_(dynamic), value_(dynamic ? spec.initial : 1.0) {}

  double value() const { return value_; }
  int64_t steps_since_change() const { return steps_; }
  bool at_minimum() const { return value_ <= spec_.minimum; }
  void note_overflow();
  void note_success();
  void restore(double value, int64_t steps_since_change) { value_ = value, steps_ = steps_since_change; }

 private:
  LossScaleSpec spec_;
  bool dynamic_;
  double value_;
  int64_t steps_ = 0;
};

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
