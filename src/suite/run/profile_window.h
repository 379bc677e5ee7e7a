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

// The steps to record of a run of `steps`: those asked for or, after ten steps and the configured warm-up, but not
// later than in the middle of the run, 5 steps (3 of a run below 20 steps). Throws Error for steps that the run has
// not.
StepRange choose_window(const ProfileRequest& request, int64_t steps, std::optional<int64_t> fixed_warmup_steps);

// Ends one step after the window; without checkpoints and evaluations, which are no part of a steady step.
TrainSpec shorten_to(const StepRange& window, TrainSpec spec);

// "profile_cuda_llama_tp8", with several frameworks "profile_cuda_llama_tp8_fsdp".
std::string profile_name(Platform platform, const TrainSpec& spec, std::optional<Framework> framework);

}  // namespace tprimat::suite
