#pragma once

#include <optional>
#include <vector>

#include "base/error.h"
#include "spec/names.h"
#include "spec/train_spec.h"

namespace tprimat::suite {

// What of a training the frameworks on Megatron Core that we drive by settings (NeMo, Primus) do not do, one problem
// each; empty when they do it all.
std::vector<Problem> find_megatron_core_limits(Framework framework, const TrainSpec& spec);

// Fused attention over a window that is shorter than the sequence.
bool has_short_window(const TrainSpec& spec);

// Megatron keeps weights in fp8 only where the data-parallel ranks share the optimizer's state.
bool shares_optimizer(const TrainSpec& spec, const std::optional<bool>& fp8_param);

}  // namespace tprimat::suite
