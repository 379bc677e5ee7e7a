#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "result/run_result.h"
#include "spec/experts.h"

namespace tprimat::results {

// What a run tells of its experts: the result's own facts, else the settings that the framework printed, else the
// shape. Nothing where none of them tells.
std::optional<bool> is_sparse(const RunResult& run);
std::optional<Routing> routing_of(const RunResult& run);
std::optional<Dispatcher> dispatcher_of(const RunResult& run);
std::optional<double> capacity_of(const RunResult& run);            // 0: an expert takes all tokens that come
std::optional<int64_t> prediction_layers_of(const RunResult& run);  // 0: none

// How learned routing is kept even. A shape without any leaves it open, and so does that of a log that only names its
// model. Kind and coefficient are words, as frameworks know more kinds than a shape, and add several losses:
// "sinkhorn", "aux_loss+global_aux_loss" with "0.01+0.001".
struct Balancing {
  std::optional<std::string> kind, aux_loss;  // aux_loss: coefficient of the balancing loss
  std::optional<double> z_loss;               // coefficient
  bool is_any() const { return kind.value_or("none") != "none" || aux_loss.value_or("0") != "0" || z_loss > 0.0; }
};
Balancing balancing_of(const RunResult& run);

// Means over the steady steps.
std::optional<double> load_of(const RunResult& run);           // tokens of the fullest expert / mean
std::optional<double> dropped_share_of(const RunResult& run);  // 0 where no capacity limits an expert

// The shape as if each token passed all experts, as programs count that know of dense models only.
ModelSpec with_all_experts(ModelSpec shape);

// Replaces the series of load, dropped tokens and losses by their means.
void keep_means(RunResult& run);

}  // namespace tprimat::results
