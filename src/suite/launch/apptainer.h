#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/argument_list.h"
#include "launch/launch_plan.h"

namespace tprimat::suite {

bool is_apptainer(ContainerProgram program);

// A command in an image under Apptainer, or under Singularity, its name before 2021. It is a child process as any
// other: no daemon starts it, and it has the environment of its parent.
struct ApptainerRun {
  std::string program;  // apptainer or singularity
  Platform platform = Platform::cpu;
  std::string image;                 // as `launch` names it
  std::string home;                  // folder in place of the user's home; empty: the user's
  std::vector<std::string> volumes;  // FROM:TO
  std::map<std::string, std::string> environment;
  std::string working_directory;
  Arguments arguments;  // further ones before the image
};

// "apptainer exec --nv --bind ... --pwd ... --env ... docker://IMAGE"; the command follows. Throws Error for what
// Apptainer cannot do.
Arguments apptainer_arguments(const ApptainerRun& run);

}  // namespace tprimat::suite
