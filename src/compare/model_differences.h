#pragma once

#include "compare/evidence.h"
#include "result/run_result.h"

namespace tprimat {

// What makes one model more work than the other: layers, widths, heads, experts, a window shorter than the sequence.
// Where a side's shape is not known, the parameter counts speak.
Evidences find_other_work(const RunResult& reference, const RunResult& subject);

// What makes it another model of about the same work: kind of norm and positions, biases, padding of the vocabulary.
Evidences find_other_details(const RunResult& reference, const RunResult& subject);

}  // namespace tprimat
