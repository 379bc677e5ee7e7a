#include "train/loss_watch.h"

#include <algorithm>

namespace tprimat::engine {

void LossScale::note_overflow() {
  if (!dynamic_) return;
  value_ = std::max(value_ / 2, spec_.minimum);
  steps_ = 0;
}

void LossScale::note_success() {
  if (!dynamic_ || ++steps_ < spec_.window) return;
  value_ *= 2;
  steps_ = 0;
}

bool AnomalyWatch::is_spike(double loss) {
  constexpr int64_t k_first = 10, k_window = 50;
  if (spec_.spike_factor == 0) return false;
  if (losses_ >= k_first && loss > spec_.spike_factor * mean_) return true;
  ++losses_;
  mean_ += (loss - mean_) / static_cast<double>(std::min(losses_, k_window));
  return false;
}

}  // namespace tprimat::engine
