#pragma once

#include <cstdint>
#include <optional>

#include "text/fields.h"

namespace tprimat::planner {

// What is assumed of failures and checkpoints. The defaults and their sources: src/planner/planner/reliability.tsv.
struct Reliability {
  double failure_gpu_hours = 0;             // mean time between two failures, times the GPUs
  double restart_seconds = 0;               // from a failure until the checkpoint is read
  double storage_bandwidth_per_gpu = 0;     // bytes/s; of all GPUs together where storage_bandwidth is not stated
  std::optional<double> storage_bandwidth;  // bytes/s, however many GPUs write
};
const Reliability& published_reliability();

// Share of the time that goes into training: the rest writes checkpoints, repeats what a failure lost, and restarts.
struct Goodput {
  double failure_seconds = 0;         // mean time between failures of all GPUs together
  double checkpoint_seconds = 0;      // to write one; and to read it after a failure
  double interval_seconds = 0;        // of computing between two checkpoints, at its optimum
  double young_interval_seconds = 0;  // the first-order optimum
  double restart_seconds = 0;         // besides reading the checkpoint
  double failure_gpu_hours = 0;       // behind failure_seconds
  double share = 1;

  // Failures come faster than it restarts: less than a millionth of the time trains, and nothing ever ends.
  bool is_hopeless() const {
    constexpr double k_min_share = 1e-6;
    return !(share >= k_min_share);
  }

  static constexpr auto fields() {
    using G = Goodput;
    return field_list(
        field("failure_seconds", &G::failure_seconds, "mean time between failures of all GPUs"),
        field("checkpoint_seconds", &G::checkpoint_seconds, "time to write a checkpoint"),
        field("interval_seconds", &G::interval_seconds, "optimal time between checkpoints (Daly 2006)"),
        field("young_interval_seconds", &G::young_interval_seconds, "first-order optimum (Young 1974)"),
        field("restart_seconds", &G::restart_seconds, "restart after a failure, without reading the checkpoint"),
        field("failure_gpu_hours", &G::failure_gpu_hours, "GPU-hours between failures"),
        field("share", &G::share, "share of the time spent training"));
  }
};
// Checkpoints are at least one step apart.
Goodput estimate_goodput(const Reliability& reliability, int64_t gpus, double checkpoint_bytes, double step_seconds);

// With checkpoints of `checkpoint` seconds and a failure every `failure` seconds, both in one unit. Young, CACM 17 (9),
// 1974: sqrt(2 checkpoint failure). Daly, FGCS 22 (3), 2006: two orders more, of the computing alone.
double young_interval(double checkpoint, double failure);
double daly_interval(double checkpoint, double failure);

// Of the same paper, the share of its complete model: failures are a Poisson process and may
// strike restarts and checkpoints too.
double daly_share(double interval, double checkpoint, double restart, double failure);

// Of `count` draws from a standard normal distribution (Blom 1958, alpha = 3/8).
double expected_maximum(double count);

}  // namespace tprimat::planner
