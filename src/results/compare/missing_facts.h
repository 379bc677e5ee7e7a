#pragma once

#include <optional>

#include "compare/audit.h"

namespace tprimat::results {

// Facts that a result lacks, each a proof where the fact is missing and nothing where it is known.
std::optional<Proof> find_no_model(const RunResult& run);
std::optional<Proof> find_no_rate(const RunResult& run);  // and which of its inputs are absent
std::optional<Proof> find_no_precision(const RunResult& run);
std::optional<Proof> find_no_shape(const RunResult& run);
std::optional<Proof> find_no_losses(const RunResult& run);
std::optional<Proof> find_no_learning_rates(const RunResult& run);
std::optional<Proof> find_no_framework(const RunResult& run);
std::optional<Proof> find_no_length(const RunResult& run);
std::optional<Proof> find_no_platform(const RunResult& run);
std::optional<Proof> find_no_device(const RunResult& run);

}  // namespace tprimat::results
