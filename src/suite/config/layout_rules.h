#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/train_spec.h"

namespace tprimat::suite {

// The task that a layout must fit.
struct LayoutTask {
  const ModelSpec& model;
  int64_t devices = 1;
  int64_t micro_batch_size = 1, global_batch_size = 1, sequence_length = 1;
};

// The rules that the layout breaks, each as a sentence with its numbers; empty when it can run.
//   TP x PP x DP x CP = devices
//   GBS = MBS x DP x GA
//   TP divides heads and FFN, and divides the KV heads or is a multiple of them
//   PP x VP divides the layers, or is the number of chunks of the pipeline_layout; VP needs PP, and PP divides GA (the
//   interleaved schedule takes micro batches by PP)
//   2 x CP divides SL
//   EP divides the experts, ETP an expert's FFN, EP x ETP divides TP x CP x DP; a dense model has neither
//   with SP, TP divides the tokens of a micro batch, MBS x SL / CP
// A layout and a batch that break none also pass check_train_spec's rules for them.
std::vector<std::string> list_broken_rules(const LayoutTask& task, const ParallelSpec& layout,
                                           std::optional<int64_t> stated_accumulation = {});

// The layout nearest to the wanted one that breaks no rule; nothing when the batch or the device count allow none.
std::optional<ParallelSpec> find_sound_layout(const LayoutTask& task, const ParallelSpec& wanted);

// EP and ETP as near to what the layout states as its other sizes and the model allow; none for a dense model.
void fit_expert_sizes(const ModelSpec& model, ParallelSpec& layout);

// "{TP: 4, PP: 1, DP: 2, GA: 64}", with VP, CP, EP and ETP where they are not 1.
std::string print_layout(const LayoutTask& task, const ParallelSpec& layout);

// The hint behind broken rules: a layout that would pass, or the batch size that would make one possible.
std::string suggest_layout(const LayoutTask& task, const ParallelSpec& wanted);

// Bytes of weights, gradients and optimizer state on one device, without activations. Mixed precision: 2 bytes of
// weights, 4 of gradients and 12 of FP32 master weights and two moments per parameter (Rajbhandari et al., arXiv
// 1910.02054, with FP32 gradients); FP32: 4 + 4 + 8. Moments in bf16 take half as much; without master weights their 4
// bytes disappear. The DP ranks share the master weights and moments from `zero_stage` 1 on, the gradients from 2 on,
// the weights at 3 (ZeRO-3, FSDP). Routed experts are split by EP x ETP and not by TP, and shared by the ranks of TP x
// CP x DP that hold the same ones.
double estimate_state_bytes(const ModelSpec& model, const ParallelSpec& layout, Precision precision,
                            const OptimizerSpec& optimizer, int64_t zero_stage);

}  // namespace tprimat::suite
