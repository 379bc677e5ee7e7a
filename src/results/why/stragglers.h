#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/fields.h"
#include "why/replay.h"

namespace tprimat::results {

// The slowdown that a part of the operations causes: the step when these keep their durations and all others have the
// ideal ones, over the ideal step.
struct StragglerPart {
  std::string name;  // "stage 3", "replica 0", "forward_compute"
  double slowdown = 1;

  static constexpr auto fields() {
    using P = StragglerPart;
    return field_list(
        field("name", &P::name, "stage, replica or operation"),
        field("slowdown", &P::slowdown, "step with its durations as measured and all others even / ideal"));
  }
};

struct StragglerWorker {
  int32_t dp_rank = 0, stage = 0;
  double slowdown = 1;  // the smaller of its replica's and its stage's

  static constexpr auto fields() {
    using W = StragglerWorker;
    return field_list(field("dp_rank", &W::dp_rank, "data-parallel rank"), field("stage", &W::stage, "pipeline stage"),
                      field("slowdown", &W::slowdown, "the smaller of its replica's and its stage's slowdown"));
  }
};

// What stragglers cost. Ideal: every operation of a kind takes equally long, the mean of computations and the median of
// transfers, over all workers and steps. Times are means over the steps, in seconds.
struct StragglerReport {
  int64_t steps = 0, workers = 0;
  double measured_seconds = 0;
  double no_delay_seconds = 0;  // without delays of the host
  double ideal_seconds = 0;
  double launch_slowdown = 1;                               // measured / no_delay
  double slowdown = 1;                                      // no_delay / ideal
  std::vector<StragglerPart> stages, replicas, operations;  // largest first
  std::vector<StragglerWorker> slowest;                     // 3 % of the workers, at least one
  // Of the excess over the ideal step, the share that goes when the last stage (the slowest workers) has ideal
  // durations. Beyond 1 where others lose their waiting too. Absent where there is no excess.
  std::optional<double> last_stage_share, slowest_workers_share;
  double without_last_stage_seconds = 0, without_slowest_workers_seconds = 0;

  // How far the replay, without the host's delays, is from the measured step.
  double replay_error() const { return no_delay_seconds / measured_seconds - 1; }

  static constexpr auto fields() {
    using R = StragglerReport;
    return field_list(
        field("steps", &R::steps, "steps replayed"), field("workers", &R::workers, "stages of all replicas"),
        field("measured_seconds", &R::measured_seconds, "mean step as recorded, s"),
        field("no_delay_seconds", &R::no_delay_seconds, "replay of it without delays of the host, s"),
        field("ideal_seconds", &R::ideal_seconds, "replay with even durations, s"),
        field("launch_slowdown", &R::launch_slowdown, "measured / no_delay"),
        field("slowdown", &R::slowdown, "no_delay / ideal: what stragglers cost"),
        field("stages", &R::stages, "slowdown that each stage causes alone, largest first"),
        field("replicas", &R::replicas, "slowdown that each data-parallel rank causes alone"),
        field("operations", &R::operations, "slowdown that each operation causes alone"),
        field("slowest", &R::slowest, "3 % of the workers, at least one"),
        field("last_stage_share", &R::last_stage_share, "share of the excess that goes with an even last stage"),
        field("slowest_workers_share", &R::slowest_workers_share, "share that goes with even slowest workers"),
        field("without_last_stage_seconds", &R::without_last_stage_seconds, "step with an even last stage, s"),
        field("without_slowest_workers_seconds", &R::without_slowest_workers_seconds,
              "step with even slowest workers, s"));
  }
};

// By operation, the ideal duration.
std::vector<double> ideal_durations(const PipelineReplay& pipeline);

StragglerReport find_stragglers(const PipelineReplay& pipeline);

}  // namespace tprimat::results
