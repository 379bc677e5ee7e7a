#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "text/fields.h"
#include "trace/pipeline_records.h"
#include "why/stragglers.h"

namespace tprimat::results {

// What one worker did in a step, on average.
struct PipelineWorker {
  int32_t dp_rank = 0, stage = 0;
  double forward_seconds = 0, backward_seconds = 0;
  double bubble = 0;  // share of the step in which it computes nothing

  static constexpr auto fields() {
    using W = PipelineWorker;
    return field_list(field("dp_rank", &W::dp_rank, "data-parallel rank"), field("stage", &W::stage, "pipeline stage"),
                      field("forward_seconds", &W::forward_seconds, "forward computations, s per step"),
                      field("backward_seconds", &W::backward_seconds, "backward computations, s per step"),
                      field("bubble", &W::bubble, "1 - computations / step"));
  }
};

// Where the time of a pipeline's step goes. Times are means over the steps.
struct PipelineReport {
  int64_t steps = 0, stages = 0, replicas = 0, micro_batches = 0;
  double step_seconds = 0;
  double bubble = 0;           // mean over the workers
  double balanced_bubble = 0;  // the same if all stages and workers were equally fast: what the schedule costs
  std::vector<PipelineWorker> workers;
  StragglerReport stragglers;
  std::vector<std::string> findings;  // sentences with their remedies
  std::vector<std::string> notes;

  static constexpr auto fields() {
    using R = PipelineReport;
    return field_list(
        field("steps", &R::steps, "steps recorded, the warm-up left out"),
        field("stages", &R::stages, "pipeline stages"), field("replicas", &R::replicas, "data-parallel ranks"),
        field("micro_batches", &R::micro_batches, "micro-batches per step"),
        field("step_seconds", &R::step_seconds, "mean step, s"),
        field("bubble", &R::bubble, "share of the step in which a worker computes nothing, mean over the workers"),
        field("balanced_bubble", &R::balanced_bubble, "the same with equally fast workers and no delays of the host"),
        field("workers", &R::workers, "by data-parallel rank and stage"),
        field("stragglers", &R::stragglers, "slowdown by unequal durations, from a replay"),
        field("findings", &R::findings, "what costs most, with remedies"),
        field("notes", &R::notes, "what to know before trusting the figures"));
  }
};

PipelineReport report_pipeline(const PipelineReplay& pipeline);

// Operations from records of each rank: one replica's stages, data-parallel ranks and one rank of each tensor-parallel
// group, as Megatron numbers them. The first of several iterations is warm-up and left out.
std::vector<logs::WorkerOperation> operations_of(const logs::PipelineRecords& records);

// A folder with pp_rank_N.json, or a table of operations. Throws Error.
bool is_pipeline_input(const std::filesystem::path& path);
PipelineReplay load_pipeline(const std::filesystem::path& path);

// For the terminal.
std::string render_pipeline(const PipelineReport& report);

}  // namespace tprimat::results
