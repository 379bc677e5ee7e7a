#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/frameworks.h"
#include "text/json.h"

// What the frameworks on Megatron Core take of sparse models, under the names of Megatron-LM's arguments.
namespace tprimat::suite {

// The width of a dense MLP; of a model that has none, that of an expert, because the programs want one.
int64_t dense_ffn_width(const ModelSpec& model);

// Of the loss of the layers that predict further tokens; a ModelSpec has none. Megatron-LM's own default.
inline constexpr double k_prediction_loss_factor = 0.1;

// For each layer of a sparse model 1 where it has experts, 0 where it has a dense MLP.
std::vector<int64_t> list_expert_layers(const ModelSpec& model);

// The same as Megatron-LM's --moe-layer-freq takes it: "([0]*3+[1]*58)".
std::string write_expert_layers(const ModelSpec& model);

// The loss that keeps the experts' load even. With a bias (DeepSeek-V3) a coefficient above 0 adds that of each
// sequence.
struct BalancingLoss {
  std::string_view type;  // "none", "aux_loss", "seq_aux_loss"
  double coefficient = 0.0;
};
BalancingLoss balancing_loss(const Experts& experts);

// Whether the chosen experts' weights are those of a softmax over all experts, as they are.
bool keeps_softmax_of_all(const Experts& experts);

// Where a model has a window: each n-th layer ignores it; nothing where all layers have it. CHECKs divides_windows.
std::optional<int64_t> full_attention_interval(const ModelSpec& model);
bool divides_windows(const ModelSpec& model);

// Settings of a sparse model: its experts, router, dispatcher and forced balance, EP and ETP; complete, null where
// there is none. Those of one kind of exchange (flex) differ between versions and are not among them.
Json list_expert_settings(const TrainSpec& spec);

// Of multi-head latent attention, and of the layers that predict further tokens.
Json list_latent_attention_settings(const ModelSpec& model);
Json list_prediction_settings(const ModelSpec& model);

// Whether MLA's rotary positions are scaled by YaRN with the numbers that Megatron Core holds as constants.
bool has_fixed_yarn(const ModelSpec& model);

// Experts whose SwiGLU has biases: Megatron Core's fused kernel of weighted tokens has none.
bool has_biased_swiglu(const ModelSpec& model);

// Whether tokens reach their experts' ranks by a fused exchange, Megatron Core's dispatcher "flex".
bool has_flex_dispatcher(const TrainSpec& spec);

// What selective recomputation repeats, by Megatron Core's names; empty where it is not stated.
std::vector<std::string> list_recomputed_modules(const TrainSpec& spec);

// Refuses what Megatron Core does not train of a sparse model, of MLA, of windows in some layers only and of hybrids.
void add_sparse_limits(Refusals& refusals, const TrainSpec& spec);

}  // namespace tprimat::suite
