#pragma once

#include "compare/evidence.h"
#include "result/run_result.h"

namespace tprimat::results {

// Settings as the frameworks printed them, known on both sides and different; other names of one setting are one.
Evidences find_other_data_settings(const RunResult& reference, const RunResult& subject);  // what is computed
Evidences find_synthetic_data(const RunResult& reference, const RunResult& subject);       // where tokens come from
Evidences find_other_tuning(const RunResult& reference, const RunResult& subject);         // how it is computed

}  // namespace tprimat::results
