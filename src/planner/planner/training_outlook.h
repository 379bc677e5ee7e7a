#pragma once

#include <cstdint>
#include <optional>

#include "planner/search.h"
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

// What a training is asked to reach, and what its GPUs cost. What is not known is absent.
struct TrainingTerms {
  double tokens = 1e12;
  std::optional<double> usd_per_gpu_hour;
  std::optional<double> tdp_watts;  // of one GPU
  Reliability reliability = published_reliability();
  std::optional<double> node_noise;  // standard deviation of a node's step time, relative; else as calibrated
};

// All nodes wait for the slowest. The calibrated model adds `straggling` per doubling of the nodes; independent normal
// noise of the nodes adds its standard deviation times the expected maximum, which grows likewise, though ever slower.
struct Straggling {
  double nodes = 1;
  double share = 0;             // added to the step, relative
  double expected_maximum = 0;  // of as many standard normal draws as there are nodes
  double node_noise = 0;        // of one node, relative: that of which `share` is the expected maximum

  static constexpr auto fields() {
    using S = Straggling;
    return field_list(
        field("nodes", &S::nodes, "nodes of eight GPUs"),
        field("share", &S::share, "relative step time added by waiting for the slowest node"),
        field("expected_maximum", &S::expected_maximum, "expected maximum of that many standard normal draws"),
        field("node_noise", &S::node_noise, "relative standard deviation of one node's step time"));
  }
};

// A whole training in a layout.
struct TrainingOutlook {
  double tokens = 0;
  double tokens_per_second = 0;  // while it trains
  Goodput goodput;
  Straggling straggling;
  std::optional<double> days;  // absent where failures come faster than it restarts
  std::optional<double> usd_per_gpu_hour, usd, tdp_watts, megawatt_hours;

  static constexpr auto fields() {
    using O = TrainingOutlook;
    return field_list(
        field("tokens", &O::tokens, "tokens to train"),
        field("tokens_per_second", &O::tokens_per_second, "of all GPUs, while training"),
        field("goodput", &O::goodput, "share of time left by failures and checkpoints"),
        field("straggling", &O::straggling, "cost of the slowest node, included in the step time"),
        field("days", &O::days, "tokens / (tokens/s x goodput); absent if the training never finishes"),
        field("usd_per_gpu_hour", &O::usd_per_gpu_hour, "price of one GPU-hour"),
        field("usd", &O::usd, "price x GPUs x hours"),
        field("tdp_watts", &O::tdp_watts, "thermal design power of one GPU"),
        field("megawatt_hours", &O::megawatt_hours, "upper bound: the GPUs at their thermal design power"));
  }
};
TrainingOutlook foresee_training(const RankedLayout& plan, const TrainingTerms& terms, const Straggling& straggling);

// Weights in 16 bits, their fp32 form and Adam's two moments: 14 bytes per parameter.
double checkpoint_bytes(const ModelSpec& shape);

// With the `node_noise` of the terms, else with what was calibrated per doubling of the nodes.
Straggling estimate_straggling(int64_t gpus, double per_doubling, std::optional<double> node_noise);

// Replaces the calibrated wait for the slowest node by that of independent noise. It is one factor for every layout of
// as many GPUs, and so never changes their order.
void apply_node_noise(SearchOutcome& outcome, int64_t gpus, double per_doubling, double node_noise);

}  // namespace tprimat::planner
