#include "launch/launchers/docker.h"

#include "launch/container.h"
#include "launch/launchers/local.h"
#include "launch/program_path.h"

namespace tprimat::suite {

void place_in_container(const Placement& placement, LaunchPlan& plan) {
  plan.waits_in_queue = true;
  const LaunchRequest& request = placement.request;
  const DockerSettings& settings = request.launch.docker;
  describe_single_node(placement, plan);
  ContainerRun run;
  run.program = settings.program.value_or(find_container_program().value_or(ContainerProgram::docker));
  run.platform = request.platform;
  run.name = placement.name;
  run.image = settings.image.empty() ? default_image(request.platform) : settings.image;
  run.shm_size = settings.shm_size;
  run.volumes = mounts_of_folders(request, ":");
  run.volumes.insert(run.volumes.end(), settings.volumes.begin(), settings.volumes.end());
  for (const auto& [name, value] : plan.environment) run.variables.push_back(name);
  run.variables.insert(run.variables.end(), settings.environment.begin(), settings.environment.end());
  run.working_directory = plan.working_directory;
  run.arguments = settings.arguments;
  run.command = start_ranks_there(placement.program, placement.ranks);
  plan.command = container_arguments(run);
  plan.cleanup_command = {std::string(enum_name(run.program)), "kill", run.name};
  plan.place = Whereabouts::this_machine;
}

bool is_container_program_here(const LauncherSettings& settings) {
  if (settings.docker.program) return is_in_path(std::string(enum_name(*settings.docker.program)));
  return find_container_program().has_value();
}

}  // namespace tprimat::suite
