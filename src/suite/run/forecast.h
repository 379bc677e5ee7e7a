#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/memory.h"
#include "planner/spec_workload.h"
#include "run/suite_context.h"
#include "run/suite_plan.h"

namespace tprimat::suite {

// Memory of one device, and the source of the figure.
struct DeviceMemory {
  double bytes = 0;
  std::string source;
  int64_t ranks = 1;  // that share it, on a processor
};

// The planner's prediction for a run before it starts.
struct Forecast {
  planner::Workload workload;
  std::string missing;                            // why there is none; else empty
  std::optional<planner::MemoryEstimate> memory;  // of the device that needs most
  std::optional<DeviceMemory> device;             // where it is known
  double needed = 0;                              // of the ranks that share that memory, together
  bool fits() const { return !memory || !device || needed <= device->bytes; }
  // The rest of a mixture of experts is a rough estimate: such a run is refused where its states alone do not fit.
  bool may_fit() const { return fits() || (workload.shape.experts && memory->states() <= device->bytes); }
};
// Where a run's device is known.
std::optional<DeviceMemory> device_memory_of(const PlannedRun& run, const MachineFacts& machine);

// What a workload needs of that memory, and how much of it a training may plan with.
double bytes_needed(const DeviceMemory& device, const planner::Workload& workload,
                    const planner::ParameterSet& parameters);
double usable_bytes(const Forecast& forecast);

// expert_load: copies of tokens that the experts of the fullest rank take, over the mean.
Forecast forecast(const PlannedRun& run, const MachineFacts& machine, const planner::PlannerSettings& planner,
                  double expert_load = 1);

// Of the processor that all ranks of a run use together.
int64_t used_threads(const PlannedRun& run, const CpuFacts& cpu);

// Threads of each rank of a training on processors that states none: all of its node, or of its pod where the
// configuration says how many those are.
int64_t threads_of_rank(const LauncherSettings& launch, int64_t ranks, const CpuFacts& cpu);

// One problem for each training that surely exceeds its devices' memory, with the nearest layout that fits.
std::vector<Problem> find_misfits(const SuitePlan& suite, const MachineFacts& machine,
                                  const planner::PlannerSettings& planner);

// One problem for each mixture of experts whose states alone fit, but by a rough estimate not the rest.
std::vector<Problem> find_doubtful_fits(const SuitePlan& suite, const MachineFacts& machine,
                                        const planner::PlannerSettings& planner);

// "the nearest layout that fits: {TP: 1, PP: 1, DP: 2, GA: 8}, MBS 1, which needs 9.10 GB", of a run that does not fit.
std::string suggest_fitting(const PlannedRun& run, const Forecast& known, const planner::PlannerSettings& planner);

// "{TP: 1, PP: 1, DP: 2, GA: 4}, MBS 2, recompute full"
std::string print_planned_layout(const PlannedRun& run);

// "the heaviest rank needs 0.61 GB of 16.40 GB (this machine's memory): moments 0.21 GB, weights 0.14 GB"
std::string describe_memory(const Forecast& forecast);

// The machine whose step times the planner predicts for a run: a processor of that peak, or the GPU of the run. Its
// layout does not matter.
struct TimedMachine {
  std::optional<planner::Machine> machine;
  std::string missing;  // why no time is predicted; else empty
};
TimedMachine find_timed_machine(const PlannedRun& run, const MachineFacts& machine,
                                const std::optional<PeakInfo>& peak);

// The part stored in the result, with the time of a step on a processor of that peak or on the GPU of the run.
std::optional<Prediction> predict(const PlannedRun& run, const MachineFacts& machine,
                                  const planner::PlannerSettings& planner, const std::optional<PeakInfo>& peak);

// The planned memory of a run's layout, part by part, and whether it fits; if not, a layout that does.
std::string render_memory(const PlannedRun& run, const Forecast& known, const planner::PlannerSettings& planner);

}  // namespace tprimat::suite
