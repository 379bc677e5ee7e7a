#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "planner/parameters.h"
#include "run/gpu_models.h"
#include "run/suite_plan.h"
#include "telemetry/machine.h"

namespace tprimat::suite {

// The GPUs that a training takes where no configuration names any: those of one kind that this process sees.
struct DefaultGpus {
  Platform platform = Platform::nvd;
  std::string name;
  int64_t count = 1;
  std::optional<double> memory_bytes;      // of the smallest; the driver's figure, else the catalogue's
  std::optional<double> peak_flops;        // of one, in `precision`; the catalogue's
  std::vector<std::string> left_out = {};  // sentences about GPUs that are not taken
  Precision precision = Precision::bf16;   // fp16 on parts without bf16
};

// Nothing on a machine without GPUs, or where the environment's *_VISIBLE_DEVICES hide all of them.
std::optional<DefaultGpus> find_default_gpus(const MachineFacts& machine, const EnvironmentReader& variable);

// PyTorch FSDP2 where it is installed and built for these GPUs; else why not, as a sentence.
struct PeerFramework {
  std::string version;  // "2.13.0, CUDA 13.0"; empty: it is not taken
  std::string missing;
};
PeerFramework find_peer_framework(Platform platform);

// What the built-in default trains on GPUs.
struct GpuDefault {
  std::string yaml;                  // a whole configuration
  std::vector<std::string> reasons;  // why this one, as sentences
};

// The largest shapes of two families that fit into each GPU's memory in every framework and, by an assumed share of the
// peak, take two minutes together; data-parallel over all GPUs.
GpuDefault choose_gpu_default(const DefaultGpus& gpus, const PeerFramework& peer,
                              const planner::ParameterSet& parameters);

// "4 trainings of 93 steps ...: about 1 min 58 s, an estimate ...": of the plan that the default, options and
// environment have become.
std::string describe_expected(const SuitePlan& suite, const DefaultGpus& gpus, const planner::ParameterSet& parameters);

// The sentences that the runs of a suite carry, a line each; empty where a configuration stated them.
std::string render_default_choice(const SuitePlan& suite);

}  // namespace tprimat::suite
