#pragma once

#include "planner/workload.h"

namespace tprimat::planner {

// A sparse model has two kinds of layers: with experts, and with a dense MLP. All layers of other models are dense.
enum class LayerKind { dense, experts };

// Bytes that one layer keeps of one micro-batch on one rank, by arXiv 2205.05198, equations 1 to 4, for the GPT that
// the paper counts: s b h (34 + 5 a s / h) / t with sequence parallelism; and by the same bookkeeping for gated MLPs,
// grouped keys and fused attention. Without dropout no masks are kept.
//
// Latent attention (arXiv 2405.04434, section 2.1) keeps queries and keys with their rotary part, values, their sum,
// and each narrow product's result before and after its norm.
//
// A layer with experts keeps of each token what its shared experts keep, the router's logits and scores in fp32 and a
// byte of its choice for every expert; and of each copy of a token that the rank's experts take, their input, their
// MLP's products and one fp32 weight. Copies on a rank: T·k·L, of the T tokens that lie on it, with k experts for each.
// The ETP ranks of an expert take each other's tokens and split its inner width. L is `load`, 0: of the fullest rank.
double layer_activation_bytes(const Workload& workload, LayerKind kind = LayerKind::dense, double load = 0);

// The same of a layer that is computed again, while it is.
double whole_layer_activation_bytes(const Workload& workload, LayerKind kind, double load = 0);

// Copies of tokens that the fullest rank's experts take, over the mean: the workload's expert_load, which the experts'
// capacity limits, and no rank takes more than all (EP times the mean).
double load_of_fullest_rank(const Workload& workload);

// Weights on one rank, before data-parallel ranks split them.
struct RankWeights {
  double common = 0;   // that DP x CP ranks have alike
  double experts = 0;  // routed: that TP x CP x DP / (EP x ETP) ranks have alike
  double total() const { return common + experts; }
};
// Down projections of latent attention and routers lie on every tensor-parallel rank; the rest of a layer is split.
RankWeights layer_rank_weights(const Workload& workload, LayerKind kind);
RankWeights stage_weights(const Workload& workload, int64_t stage);

// Of one layer, split over no rank.
double layer_weights(const ModelSpec& model);

// Parameters that lie on one rank, before data-parallel ranks split them: those of the pipeline stage that has most.
double heaviest_rank_weights(const Workload& workload);

// Layers of a stage; prediction: those that predict further tokens, which the last stage has.
struct StageLayers {
  int64_t dense = 0, experts = 0, prediction = 0;
};
StageLayers layers_of_stage(const Workload& workload, int64_t stage);

// Bytes that a stage keeps of all micro-batches that are under way.
double stage_activation_bytes(const Workload& workload, int64_t stage, double load = 0);

}  // namespace tprimat::planner
