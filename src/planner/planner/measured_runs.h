#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/workload.h"

namespace tprimat::planner {

// A published run of a sparse model that the time model was fitted to, and how much longer it took than the model says.
// What no source prints (kernels, versions, launches) slows runs of one model and program alike, so that a prediction
// follows the runs near it.
struct MeasuredRun {
  std::string machine, architecture, family, model;
  std::string release;  // of the program; empty: not known
  PlanPrecision precision = PlanPrecision::bf16;
  bool scaled_by_block = false;
  std::optional<Dispatcher> dispatcher = {};
  bool overlaps_experts = false;
  Graphs graphs = Graphs::none;
  int64_t sequence_length = 1;
  Layout layout = {};
  double ratio = 1;  // measured seconds of a step over those of the time model
};
inline constexpr double k_min_ratio = 0.5, k_max_ratio = 2;  // more would be another run than described
MeasuredRun measured_run(const Workload& workload, const Machine& machine, double ratio);

// One word of all but the ratio, "run@H100-SXM-80GB;hopper;...", and back; nothing for anything else.
inline constexpr std::string_view k_run_prefix = "run@";
std::string name_run(const MeasuredRun& run);
std::optional<MeasuredRun> parse_run(std::string_view name, double ratio);

// The runs of a workload's model and program, weighed by how near they are but for the layout.
class NearRuns {
 public:
  NearRuns() = default;
  NearRuns(const std::vector<MeasuredRun>& runs, const Machine& machine, const Workload& workload);

  // Of the predicted time, near 1: exp(sum of weight · ln ratio / (sum of weights + 1)). A weight is at most 1, falls
  // with each doubling that layout or sequence differ by, and with each setting that differs.
  double factor(const Layout& layout) const;

 private:
  struct Near {
    double weight = 0, log_ratio = 0;
    std::array<double, 8> doublings{};  // of what a layout counts
    bool shards_weights = false;
    Recompute recompute = Recompute::none;
  };
  std::vector<Near> runs_;
};

}  // namespace tprimat::planner
