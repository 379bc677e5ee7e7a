#include "launch/launchers.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/checksum.h"
#include "base/error.h"
#include "launch/container.h"

namespace tprimat::suite {
namespace {

const LauncherModule& find_launcher(Launcher id) {
  const auto& modules = launcher_modules();
  return *std::find_if(modules.begin(), modules.end(), [&](const LauncherModule& each) { return each.id == id; });
}

// "tprimat_train_cpu_native_tiny_6f2b91c0": the result's name, and a checksum of its path.
std::string name_of(const LaunchRequest& request) {
  std::string stem = std::filesystem::path(request.paths.result).stem().string();
  for (char& c : stem)
    if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')) c = '_';
  return fmt::format("tprimat_{}_{:08x}", stem, crc32c(request.paths.folder));
}

bool uses_own_program(const TrainProgram& program, const LaunchPlan& plan, const LaunchRequest& request) {
  return std::ranges::find(program.arguments, request.own_program) != program.arguments.end() ||
         std::ranges::any_of(plan.environment, [&](const auto& each) { return each.second == request.own_program; });
}

// The libraries of a mounted program do not fit to the image's mpirun. Its ranks meet over TCP, where torchrun starts
// them.
void start_by_torchrun(TrainProgram& program, const LaunchRequest& request, LaunchPlan& plan) {
  if (program.start != RankStart::mpi) return;
  program.start = RankStart::torchrun;
  program.python = request.launch.python_inside;
  program.arguments.insert(program.arguments.begin(), "--no-python");
  if (request.platform == Platform::cpu && request.spec.threads > 0)
    plan.environment.emplace("OMP_NUM_THREADS", std::to_string(request.spec.threads));  // else torchrun sets 1
}

// In an image, this program and the frameworks' Python have other paths.
void move_inside(TrainProgram& program, const LaunchRequest& request, LaunchPlan& plan) {
  const bool mounts = mounts_program(request) && uses_own_program(program, plan, request);
  plan.mounts = list_mounts(request, mounts);
  if (mounts) {
    add_start_script(request, plan);
    start_by_torchrun(program, request, plan);
  }
  const std::string own = program_in_container(request);
  for (std::string& word : program.arguments)
    if (word == request.own_program)
      word = own;
    else if (!program.python.empty() && word == program.python)
      word = request.launch.python_inside;
  for (auto& [name, value] : plan.environment)
    if (value == request.own_program) value = own;
  if (!program.python.empty()) program.python = request.launch.python_inside;
}

void require_even(int64_t ranks, int64_t nodes) {
  if (ranks % nodes == 0) return;
  throw Error(Problem{
      fmt::format("{} rank{} cannot be spread evenly over {} nodes", ranks, ranks == 1 ? "" : "s", nodes),
      "launch.nodes",
      fmt::format("set launch.nodes or --nodes to a number that divides {}, or choose another strategy", ranks)});
}

}  // namespace

// Each is defined in launchers/<id>.cpp; docker in container.cpp.
LauncherModule local_launcher(), mpi_launcher(), slurm_launcher(), docker_launcher(), kubernetes_launcher();

const std::vector<LauncherModule>& launcher_modules() {
  static const std::vector<LauncherModule> modules = {local_launcher(), mpi_launcher(), slurm_launcher(),
                                                      docker_launcher(), kubernetes_launcher()};
  return modules;
}

void require_launcher(const LauncherSettings& settings) {
  const LauncherModule& module = find_launcher(settings.launcher);
  if (module.is_here(settings)) return;
  throw Error(Problem{fmt::format("the launcher '{}' is not available on this machine: {}", enum_name(module.id),
                                  module.lacking),
                      "launch.launcher", std::string(module.installing)},
              ExitStatus::missing_component);
}

void place_ranks(const TrainProgram& program, const LaunchRequest& request, LaunchPlan& plan) {
  const int64_t ranks = request.spec.parallel.ranks(), nodes = request.launch.nodes;
  require_even(ranks, nodes);
  TrainProgram placed = program;
  if (request.launch.in_container()) move_inside(placed, request, plan);
  find_launcher(request.launch.launcher).place({placed, request, ranks, nodes, name_of(request)}, plan);
}

}  // namespace tprimat::suite
