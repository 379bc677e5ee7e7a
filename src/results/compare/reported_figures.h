#pragma once

#include <optional>
#include <string>

#include "result/run_result.h"

namespace tprimat::results {

// Describes how the figures that the framework itself printed deny the derived speed, or exceed the device's peak.
// Medians over the steady steps are compared. Conventions stay silent: attention and embeddings counted or not, all
// experts counted, recomputed work counted, frozen weights counted, MFU by the peak of an A100 or of sparse products.
// Bounds and their reasons: docs/compare.md.
std::optional<std::string> describe_reported_gap(const RunResult& run);

}  // namespace tprimat::results
