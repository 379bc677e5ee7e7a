#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/parameters.h"
#include "planner/workload.h"
#include "run/peak_source.h"
#include "run/reporters.h"
#include "run/suite_context.h"
#include "run/suite_plan.h"

namespace tprimat::suite {

struct PlannedLayout {
  planner::Layout layout;
  std::string strategy;                                   // its name in results
  double step_seconds = 0;                                // predicted
  std::vector<int64_t> layers_of_places = {};             // of each chunk of the pipeline, where they are listed
  std::vector<RecomputedModule> recomputed_modules = {};  // by selective recomputation, where they are named
};

// The layouts of one training that the planner ranks best, fastest first.
struct LayoutPlan {
  Platform platform = Platform::cpu;
  Framework framework = Framework::native;
  std::string model;
  int64_t tokens_per_step = 0;
  size_t asked = 0;  // how many layouts
  std::vector<PlannedLayout> layouts;
  bool sparse = false;  // a mixture of experts
};

// "top=3" -> 3; nothing for another text.
std::optional<size_t> parse_top(std::string_view text);
inline constexpr size_t k_max_top = 1000;

// "plan_tp2_dp2_zero1_mbs4_full", the name of its strategy: unlike layouts have unlike names. Sizes of 1 are left out,
// but for DP and MBS. `listed`: so are the layers of each chunk.
std::string name_layout(const planner::Layout& layout, bool listed = false);

// Ranks the layouts of trainings by predicted step time, as `tprimat plan` does, and takes the best that the framework
// accepts and that fit into memory. A processor's peak is measured first. `around` must outlive it.
class LayoutPlanner {
 public:
  LayoutPlanner(size_t top, const SuiteContext& around, const planner::PlannerSettings& planner, Reporter& reporter)
      : top_(top), around_(around), planner_(planner), peaks_(around, reporter) {}

  // For SuiteRequest::choose_layouts. Throws Error where the planner predicts nothing or no layout is left.
  std::vector<TrainSpec> choose(const PlannedRun& training);

  const std::vector<LayoutPlan>& plans() const { return plans_; }  // of the trainings so far
  const MeasuredPeaks& measured_peaks() const { return peaks_.measured(); }

 private:
  const LayoutPlan& plan_of(const PlannedRun& training);
  planner::Machine require_machine(const PlannedRun& training);

  size_t top_;
  const SuiteContext& around_;
  planner::PlannerSettings planner_;
  PeakSource peaks_;
  std::vector<LayoutPlan> plans_;
};

// The planned layouts as a table. Empty without plans.
std::string render_layout_plans(const std::vector<LayoutPlan>& plans);

// "TP 2, DP 2, MBS 4, ZeRO 1, full recompute"
std::string print_layout_sizes(const planner::Layout& layout);

}  // namespace tprimat::suite
