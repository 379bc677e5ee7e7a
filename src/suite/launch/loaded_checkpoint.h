#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "launch/frameworks.h"
#include "launch/launch_plan.h"

namespace tprimat::suite {

// States in `spec` the checkpoint that the framework would load from `path`: a folder of checkpoints, of which it loads
// the newest, or the folder of one of them. Throws Error where the framework loads none, where there is none of its
// own, and where the training would end before it.
void choose_checkpoint(const FrameworkModule& module, const std::filesystem::path& path, TrainSpec& spec);

// Throws Error where tprimat cannot let the framework load one.
void require_loading(const FrameworkModule& module);

// How each framework finds the checkpoint at such a path. Throw Error where there is none.
LoadedCheckpoint find_native_checkpoint(const std::filesystem::path& path);
LoadedCheckpoint find_megatron_checkpoint(const std::filesystem::path& path);
LoadedCheckpoint find_megatron_deepspeed_checkpoint(const std::filesystem::path& path);

// A run moves the checkpoints of the run before it to "<folder>.before", and what was there is lost. Throws Error where
// that would be the checkpoint that it loads.
void require_kept_checkpoint(const TrainSpec& spec, const std::string& checkpoints_path);

// Whether a training saves into the folder that it loads from, so that both must stay where they are.
bool continues_in_place(const TrainSpec& spec, const std::string& checkpoints_path);

}  // namespace tprimat::suite
