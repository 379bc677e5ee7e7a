#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "why/replay.h"

namespace tprimat::results {

// The slowdown that a part of the operations causes: the step when these keep their durations and all others have the
// ideal ones, over the ideal step.
struct StragglerPart {
  std::string name;  // "stage 3", "replica 0", "forward_compute"
  double slowdown = 1;
};

struct StragglerWorker {
  int32_t dp_rank = 0, stage = 0;
  double slowdown = 1;  // the smaller of its replica's and its stage's
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

  // The replay knows nothing of the host; so far it is from the measured step.
  double replay_error() const { return no_delay_seconds / measured_seconds - 1; }
};

// By operation, the ideal duration.
std::vector<double> ideal_durations(const PipelineReplay& pipeline);

StragglerReport find_stragglers(const PipelineReplay& pipeline);

}  // namespace tprimat::results
