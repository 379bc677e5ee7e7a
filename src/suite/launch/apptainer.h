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

// Adds APPTAINERENV_NAME (SINGULARITYENV_NAME) for each variable that holds_a_secret (base/environment.h): all users of
// a machine see the words of a command, but not its environment. To be called once, before apptainer_arguments.
void hand_over_secrets(const std::string& program, std::map<std::string, std::string>& environment);

// "apptainer exec --nv --bind ... --pwd ... --env ... docker://IMAGE"; the command follows. Throws Error for what
// Apptainer cannot do. Secrets are left out.
Arguments apptainer_arguments(const ApptainerRun& run);

}  // namespace tprimat::suite
