#pragma once

#include <optional>

#include "compare/audit.h"
#include "compare/comparison.h"

namespace tprimat::results {

// It reached its target, and its log states how long that took.
bool has_time_to_train(const RunResult& run);

// A result without a step that has a time to train instead of a rate.
bool stands_for_rate(const RunResult& run);

// Rules under which the times to train of two runs differ: benchmark, division, target, samples of an evaluation. A run
// that missed its target or has no evaluation, a target that is not known and one that the closed division does not
// demand count too. Empty where a side has no such time, or both follow
// the same rules.
Evidences find_other_rules(const RunResult& reference, const RunResult& subject);

// Neither a rate nor times to train of the same rules are known on both sides.
std::optional<Proof> check_nothing_common(const RunResult& reference, const RunResult& subject);

// The times to train of the two sides; nothing where a side has none.
std::optional<TimeComparison> compare_times(const Contender& reference, const Contender& subject);

}  // namespace tprimat::results
