#pragma once

#include <cstdint>
#include <optional>

#include "compare/evidence.h"
#include "result/run_result.h"

namespace tprimat::results {

// By the shape, else as the result states it, else by the catalogue's model of that full name.
std::optional<int64_t> parameters_of(const RunResult& run);

// What makes one model more work than the other: layers, widths, heads, experts, a window shorter than the sequence.
// Without both shapes the parameter counts decide, and without both counts the full names.
Evidences find_other_work(const RunResult& reference, const RunResult& subject);

// What makes it another model of about the same work: kind of norm and positions, biases, padding of the vocabulary.
Evidences find_other_details(const RunResult& reference, const RunResult& subject);

// Neither shapes, counts nor full names show that the models are equal.
bool is_model_unproven(const RunResult& reference, const RunResult& subject);

}  // namespace tprimat::results
