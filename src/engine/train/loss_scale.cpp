#include "train/loss_scale.h"

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

}  // namespace tprimat::engine
