#include "spec/pipeline_schedule.h"

#include <algorithm>

#include "base/check.h"

namespace tprimat {
namespace {

// The k-th forward or backward of a stage: chunks take turns, each for PP micro batches.
PipelineAction action_at(PipelineAction::Kind kind, const ParallelSpec& layout, int64_t k) {
  const int64_t group = layout.pipeline * layout.virtual_pipeline;
  const auto turn = static_cast<int>(k % group / layout.pipeline);
  const bool forward = kind == PipelineAction::Kind::forward;
  return {kind, forward ? turn : static_cast<int>(layout.virtual_pipeline) - 1 - turn,
          k / group * layout.pipeline + k % layout.pipeline};
}

int64_t warmup_length(const ParallelSpec& layout, int stage, int64_t micro_batches) {
  const int64_t total = micro_batches * layout.virtual_pipeline, behind = layout.pipeline - stage - 1;
  if (layout.virtual_pipeline == 1) return std::min(behind, total);
  return std::min(2 * behind + (layout.virtual_pipeline - 1) * layout.pipeline, total);
}

}  // namespace

std::vector<PipelineAction> pipeline_schedule(const ParallelSpec& layout, int stage, int64_t micro_batches) {
  CHECK(layout.virtual_pipeline == 1 || micro_batches % layout.pipeline == 0);
  ParallelSpec turns = layout;
  if (layout.virtual_pipeline == 1) turns.pipeline = 1;  // micro batches in their order
  const int64_t total = micro_batches * layout.virtual_pipeline;
  const int64_t warmup = warmup_length(layout, stage, micro_batches);
  std::vector<PipelineAction> schedule;
  for (int64_t k = 0; k < total + warmup; ++k) {
    if (k < total) schedule.push_back(action_at(PipelineAction::Kind::forward, turns, k));
    if (k >= warmup) schedule.push_back(action_at(PipelineAction::Kind::backward, turns, k - warmup));
  }
  return schedule;
}

std::vector<int64_t> micro_batches_under_way(const std::vector<PipelineAction>& schedule, int64_t chunks) {
  std::vector<int64_t> now(static_cast<size_t>(chunks)), most(now);
  for (const PipelineAction& action : schedule) {
    int64_t& count = now[static_cast<size_t>(action.chunk)];
    count += action.kind == PipelineAction::Kind::forward ? 1 : -1;
    most[static_cast<size_t>(action.chunk)] = std::max(most[static_cast<size_t>(action.chunk)], count);
  }
  return most;
}

}  // namespace tprimat
