#pragma once

#include <optional>

#include "result/run_result.h"

namespace tprimat {

// Parameters of a mixture of experts without those of the experts that a token does not pass ("37B active"), embeddings
// included; nothing of a dense model.
std::optional<double> active_parameters_of(const ModelSpec& shape);

// Whether `stated` may be that count; sources round it to one digit ("3B").
bool is_active_count(double stated, const ModelSpec& shape);

// Whether the number of parameters that the run states is that of the active ones, taken for all.
bool counts_active_parameters(const RunResult& run);

}  // namespace tprimat
