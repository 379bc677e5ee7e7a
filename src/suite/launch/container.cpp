#include "launch/container.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "launch/apptainer.h"
#include "launch/installed.h"
#include "launch/launchers/start_ranks.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;
// NVIDIA: the container toolkit of Docker, the device names of the Container Device Interface for Podman.
// AMD: https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html
Arguments gpu_arguments(ContainerProgram program, Platform platform) {
  if (platform == Platform::amd)
    return {"--device", "/dev/kfd",  "--device",   "/dev/dri",       "--group-add",
            "video",    "--cap-add", "SYS_PTRACE", "--security-opt", "seccomp=unconfined"};
  if (platform != Platform::nvd) return {};
  if (program == ContainerProgram::podman) return {"--device", "nvidia.com/gpu=all"};
  return {"--gpus", "all"};
}

// The host's shared memory, or as much as is stated: Podman takes one of the two.
Arguments memory_arguments(const std::string& shm_size) {
  Arguments arguments = {"--ipc=host"};
  if (!shm_size.empty()) arguments = {"--shm-size", shm_size};
  append(arguments, {"--ulimit", "memlock=-1", "--ulimit", "stack=67108864"});
  return arguments;
}

// The first of all that is in PATH.
std::optional<ContainerProgram> find_runtime() {
  for (const ContainerProgram program :
       {ContainerProgram::docker, ContainerProgram::podman, ContainerProgram::apptainer, ContainerProgram::singularity})
    if (find_in_path(std::string(enum_name(program)))) return program;
  return std::nullopt;
}

ContainerProgram runtime_of(const LauncherSettings& launch) {
  return launch.docker.program.value_or(find_runtime().value_or(ContainerProgram::docker));
}

// An image of Apptainer shares the memory of this machine.
void place_under_apptainer(const Placement& placement, LaunchPlan& plan) {
  const LaunchRequest& request = placement.request;
  const DockerSettings& settings = request.launch.docker;
  const std::string program(enum_name(runtime_of(request.launch)));
  if (!settings.shm_size.empty())
    throw Error(Problem{fmt::format("{} shares the machine's /dev/shm and cannot limit it", program),
                        "launch.docker.shm_size", "leave it out"});
  hand_over_secrets(program, plan.environment);
  plan.command = apptainer_arguments({program, request.platform, settings.image, request.paths.folder, plan.mounts,
                                      plan.environment, plan.working_directory, settings.arguments});
  append(plan.command, start_ranks_there(placement.program, placement.ranks));
  plan.working_directory = request.paths.working_directory;
}

void place_in_container(const Placement& placement, LaunchPlan& plan) {
  plan.waits_in_queue = true;
  const LaunchRequest& request = placement.request;
  const DockerSettings& settings = request.launch.docker;
  describe_single_node(placement, plan);
  if (is_apptainer(runtime_of(request.launch))) return place_under_apptainer(placement, plan);
  ContainerRun run;
  run.program = runtime_of(request.launch);
  run.platform = request.platform;
  run.name = placement.name;
  run.image = image_of(request.launch, request.platform);
  run.shm_size = settings.shm_size;
  run.volumes = plan.mounts;
  for (const auto& [name, value] : plan.environment) run.variables.push_back(name);
  run.variables.insert(run.variables.end(), settings.environment.begin(), settings.environment.end());
  run.working_directory = plan.working_directory;  // in the image, where the framework's checkout may be
  plan.working_directory = request.paths.working_directory;
  run.arguments = settings.arguments;
  run.command = start_ranks_there(placement.program, placement.ranks);
  plan.command = container_arguments(run);
  plan.cleanup_command = {std::string(enum_name(run.program)), "kill", run.name};
  plan.place = Whereabouts::this_machine;
}

bool is_container_program_here(const LauncherSettings& settings) {
  if (settings.docker.program) return find_in_path(std::string(enum_name(*settings.docker.program))).has_value();
  return find_runtime().has_value();
}

}  // namespace

std::optional<ContainerProgram> find_container_program() {
  for (const ContainerProgram program : {ContainerProgram::docker, ContainerProgram::podman})
    if (find_in_path(std::string(enum_name(program)))) return program;
  return std::nullopt;
}

Arguments container_arguments(const ContainerRun& run) {
  Arguments arguments = {std::string(enum_name(run.program)), "run"};
  if (!run.is_kept) arguments.emplace_back("--rm");
  append(arguments, {"--init", "--name", run.name});
  append(arguments, run.options);
  append(arguments, gpu_arguments(run.program, run.platform));
  append(arguments, memory_arguments(run.shm_size));
  for (const std::string& volume : run.volumes) append(arguments, {"--volume", volume});
  if (!run.working_directory.empty()) append(arguments, {"--workdir", run.working_directory});
  for (const std::string& name : run.variables) append(arguments, {"--env", name});
  append(arguments, run.arguments);
  arguments.push_back(run.image);
  append(arguments, run.command);
  return arguments;
}

std::string default_image(Platform platform) { return "tprimat:" + std::string(enum_name(platform)); }

void require_mountable(const std::string& path, std::string_view separators, const std::string& where,
                       const std::string& remedy) {
  if (path.find_first_of(separators) == std::string::npos) return;
  throw Error(Problem{
      fmt::format("'{}' cannot be mounted into a container: its path must not contain any of '{}'", path, separators),
      where, remedy});
}

std::string image_of(const LauncherSettings& launch, Platform platform) {
  if (launch.launcher == Launcher::kubernetes) return launch.kubernetes.image;
  if (launch.launcher == Launcher::slurm) return launch.slurm.container_image;
  return launch.docker.image.empty() ? default_image(platform) : launch.docker.image;
}

std::string mount_of_folder(const std::string& folder, std::string_view separators, const std::string& where,
                            const std::string& remedy) {
  require_mountable(folder, separators, where, remedy);
  return folder + ":" + folder;
}

Arguments list_mounts(const LaunchRequest& request, bool with_program) {
  if (request.launch.launcher == Launcher::kubernetes) return request.launch.kubernetes.volumes;
  const bool is_docker = request.launch.launcher == Launcher::docker;
  const std::string_view separators = is_docker && !is_apptainer(runtime_of(request.launch)) ? ":" : ":,";
  Arguments mounts;
  for (const std::string& folder : folders_needed(request))
    mounts.push_back(mount_of_folder(folder, separators, "launch.launcher",
                                     "choose other folders for --output, data set and working directory"));
  if (with_program) append(mounts, mounts_of_program(request, separators));
  append(mounts, is_docker ? request.launch.docker.volumes : request.launch.slurm.container_mounts);
  return mounts;
}

Arguments folders_needed(const LaunchRequest& request) {
  const TrainSpec& spec = request.spec;
  std::set<std::string> wanted = {request.paths.folder,
                                  request.paths.working_directory,
                                  request.checkout.primus.value_or(""),
                                  spec.checkpoint.initial_weights,
                                  spec.checkpoint.load.value_or(""),
                                  request.model_notes.tokenizer_path};
  if (!request.checkout.in_image) wanted.insert(request.checkout.installation);
  if (!spec.data.is_synthetic()) wanted.insert(fs::path(spec.data.dataset).parent_path());
  Arguments folders;  // a folder precedes its subfolders
  for (const std::string& path : wanted) {
    if (!path.starts_with('/')) continue;  // inside the working directory, or not a path
    std::string folder = fs::path(path).lexically_normal();
    while (folder.ends_with('/')) folder.pop_back();
    const auto holds = [&](const std::string& above) { return is_in_folder(folder, above); };
    if (!folder.empty() && std::none_of(folders.begin(), folders.end(), holds)) folders.push_back(folder);
  }
  return folders;
}

// A container on this machine, in which the ranks start as on a machine: of Docker, Podman or Apptainer.
LauncherModule docker_launcher() {
  return {Launcher::docker,
          "Docker, Podman or Apptainer",
          place_in_container,
          is_container_program_here,
          "none of docker, podman and apptainer is in PATH",
          "sudo apt-get install podman, or install Docker or Apptainer"};
}

}  // namespace tprimat::suite
