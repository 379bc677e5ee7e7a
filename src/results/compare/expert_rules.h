#pragma once

#include <optional>
#include <string>

#include "compare/differences.h"

namespace tprimat::results {

// Rules about mixtures of experts. Each returns its evidence, or nothing.

// Of two runs.
Shown check_sparse_against_dense(const RunResult& reference, const RunResult& subject);
Shown check_routing(const RunResult& reference, const RunResult& subject);  // forced balance on one side
Shown check_capacity(const RunResult& reference, const RunResult& subject);
Shown check_prediction_layers(const RunResult& reference, const RunResult& subject);
Shown check_balancing(const RunResult& reference, const RunResult& subject);  // stated on both sides

// Of two sides: what one of them does not state, or means over their runs.
Shown check_routing_known(const Sides& sides);
Shown check_balancing_known(const Sides& sides);
Shown check_active_count(const Sides& sides);
Shown check_dropped_tokens(const Sides& sides);
Shown check_expert_load(const Sides& sides);

// Of a run.
std::optional<Proof> check_forced_balance(const LoadedRun& run);
std::optional<Proof> check_dropping(const LoadedRun& run);
std::optional<Proof> check_own_count(const LoadedRun& run);    // the file's parameter count is the active one
std::optional<Proof> check_dense_count(const LoadedRun& run);  // the framework counts all experts
std::optional<Proof> check_load_effect(const LoadedRun& run);  // step times follow the experts' load

// How the step times moved with the load of the fullest expert; nothing where they did not.
std::optional<std::string> describe_load_effect(const RunResult& run);

}  // namespace tprimat::results
