#pragma once

#include <optional>
#include <string>

#include "launch/launch_plan.h"
#include "spec/names.h"

namespace tprimat::suite {

// Steps of a training, both included; the first step is 1.
struct StepRange {
  int64_t first = 1, last = 1;
};

struct ProfileRequest {
  std::optional<Profiler> profiler;  // nothing: the framework's first for the platform
  std::optional<StepRange> steps;    // nothing: steady ones
};

// "11:15". Throws Error.
StepRange parse_step_range(const std::string& text, const std::string& where);

// The steps to record in a run of `steps`: the requested ones, or 5 steps (3 in a run below 20 steps) after ten steps
// and the configured warm-up, starting at the latest in the middle of the run. Throws Error for steps beyond the run.
StepRange choose_window(const ProfileRequest& request, int64_t steps, std::optional<int64_t> fixed_warmup_steps);

// Ends one step after the window, and disables checkpoints and evaluations, which do not belong to a steady step.
TrainSpec shorten_to(const StepRange& window, TrainSpec spec);

// "profile_cuda_llama_tp8", with several frameworks "profile_cuda_llama_tp8_fsdp".
std::string profile_name(Platform platform, const TrainSpec& spec, std::optional<Framework> framework);

}  // namespace tprimat::suite
