#include "train/anomaly_watch.h"

#include <algorithm>

namespace tprimat::engine {

bool AnomalyWatch::is_spike(double loss) {
  constexpr int64_t k_first = 10, k_window = 50;
  if (spec_.spike_factor == 0) return false;
  if (losses_ >= k_first && loss > spec_.spike_factor * mean_) return true;
  ++losses_;
  mean_ += (loss - mean_) / static_cast<double>(std::min(losses_, k_window));
  return false;
}

}  // namespace tprimat::engine
