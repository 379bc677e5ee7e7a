#include "launch/launchers/slurm_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launch/argument_list.h"
#include "launch/container.h"
#include "launch/node_script.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

// On a CPU the threads of the training are known; what a GPU's process needs is the cluster's own rule.
std::optional<int64_t> cpus_per_task(const Placement& placement) {
  const LaunchRequest& request = placement.request;
  if (request.launch.slurm.cpus_per_task) return request.launch.slurm.cpus_per_task;
  if (request.platform != Platform::cpu || request.spec.threads == 0) return std::nullopt;
  return request.spec.threads * placement.ranks_per_node() / slurm_tasks_per_node(placement);
}

void add_stated(Arguments& arguments, const char* option, const std::optional<std::string>& value) {
  if (value) arguments.push_back(fmt::format("{}={}", option, *value));
}

void add_gpus(Arguments& arguments, const Placement& placement) {
  if (placement.request.platform == Platform::cpu) return;
  const SlurmGpus gpus = placement.request.launch.slurm.gpus;
  if (gpus == SlurmGpus::gres) arguments.push_back(fmt::format("--gres=gpu:{}", placement.ranks_per_node()));
  if (gpus == SlurmGpus::gpus_per_node)
    arguments.push_back(fmt::format("--gpus-per-node={}", placement.ranks_per_node()));
}

std::string list_mounts(const Placement& placement) {
  Arguments mounts = mounts_of_folders(placement.request, ":,");
  for (const std::string& mount : placement.request.launch.slurm.container_mounts) mounts.push_back(mount);
  return join(mounts, ",");
}

void add_container(Arguments& arguments, const Placement& placement, const LaunchPlan& plan) {
  const SlurmSettings& slurm = placement.request.launch.slurm;
  if (slurm.container_image.empty()) return;
  Arguments variables = slurm.container_env;
  for (const auto& [name, value] : plan.environment) variables.push_back(name);
  arguments.push_back("--container-image=" + slurm.container_image);
  arguments.push_back("--container-mounts=" + list_mounts(placement));
  arguments.push_back("--container-workdir=" + plan.working_directory);
  if (!variables.empty()) arguments.push_back(fmt::format("--container-env={}", join(variables, ",")));
  if (!slurm.container_mount_home) arguments.push_back("--no-container-mount-home");
}

}  // namespace

int64_t slurm_tasks_per_node(const Placement& placement) {
  return starts_per_node(placement.program) ? 1 : placement.ranks_per_node();
}

Arguments slurm_shape(const Placement& placement) {
  const int64_t on_each = slurm_tasks_per_node(placement);
  Arguments arguments = {fmt::format("--job-name={}", placement.name), fmt::format("--nodes={}", placement.nodes),
                         fmt::format("--ntasks={}", on_each * placement.nodes),
                         fmt::format("--ntasks-per-node={}", on_each)};
  if (const auto processors = cpus_per_task(placement))
    arguments.push_back(fmt::format("--cpus-per-task={}", *processors));
  return arguments;
}

Arguments slurm_wishes(const Placement& placement) {
  const SlurmSettings& slurm = placement.request.launch.slurm;
  Arguments arguments;
  add_stated(arguments, "--partition", slurm.partition);
  add_stated(arguments, "--account", slurm.account);
  add_stated(arguments, "--qos", slurm.qos);
  add_stated(arguments, "--time", slurm.time);
  add_stated(arguments, "--nodelist", slurm.nodelist);
  add_gpus(arguments, placement);
  if (slurm.exclusive) arguments.push_back("--exclusive");
  append(arguments, slurm.arguments);
  return arguments;
}

Arguments slurm_step(const Placement& placement, const LaunchPlan& plan) {
  Arguments arguments = {"--export=ALL", "--kill-on-bad-exit=1"};  // also where the site or the caller exports nothing
  if (placement.program.start == RankStart::mpi)
    arguments.push_back(fmt::format("--mpi={}", enum_name(placement.request.launch.slurm.mpi)));
  add_container(arguments, placement, plan);
  return arguments;
}

}  // namespace tprimat::suite
