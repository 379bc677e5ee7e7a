#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "launch/apptainer.h"
#include "launch/installed.h"
#include "launch/launchers/start_ranks.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

// On a CPU the threads of the training are known; for GPU processes the cluster's rule applies.
std::optional<int64_t> cpus_per_task(const Placement& placement) {
  const LaunchRequest& request = placement.request;
  if (request.launch.slurm.cpus_per_task) return request.launch.slurm.cpus_per_task;
  if (request.platform != Platform::cpu || request.spec.threads == 0) return std::nullopt;
  return request.spec.threads * placement.ranks_per_node() / tasks_per_node(placement);
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

void add_container(Arguments& arguments, const Placement& placement, const LaunchPlan& plan) {
  const SlurmSettings& slurm = placement.request.launch.slurm;
  if (slurm.container_image.empty() || slurm.container_program != SlurmContainer::pyxis) return;
  Arguments variables = slurm.container_env;
  for (const auto& [name, value] : plan.environment) variables.push_back(name);
  arguments.push_back("--container-image=" + slurm.container_image);
  arguments.push_back("--container-mounts=" + join(plan.mounts, ","));
  arguments.push_back("--container-workdir=" + plan.working_directory);
  if (!variables.empty()) arguments.push_back(fmt::format("--container-env={}", join(variables, ",")));
  if (!slurm.container_mount_home) arguments.push_back("--no-container-mount-home");
}

// "--nodes=2", "--ntasks=8", "--ntasks-per-node=4", "--cpus-per-task=2": common to sbatch and srun.
Arguments slurm_shape(const Placement& placement) {
  const int64_t on_each = tasks_per_node(placement);
  Arguments arguments = {fmt::format("--job-name={}", placement.name), fmt::format("--nodes={}", placement.nodes),
                         fmt::format("--ntasks={}", on_each * placement.nodes),
                         fmt::format("--ntasks-per-node={}", on_each)};
  if (const auto processors = cpus_per_task(placement))
    arguments.push_back(fmt::format("--cpus-per-task={}", *processors));
  return arguments;
}

// Options of the command that requests nodes: "--partition=gpu", "--gres=gpu:4", "--exclusive", the further arguments.
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

// Options of srun alone: "--mpi=pmix", "--container-image=...".
Arguments slurm_step(const Placement& placement, const LaunchPlan& plan) {
  Arguments arguments = {"--export=ALL", "--kill-on-bad-exit=1"};  // also where the site or the caller exports nothing
  if (placement.program.start == RankStart::mpi)
    arguments.push_back(fmt::format("--mpi={}", enum_name(placement.request.launch.slurm.mpi)));
  add_container(arguments, placement, plan);
  return arguments;
}

bool in_allocation() { return std::getenv("SLURM_JOB_ID") != nullptr; }

bool uses_srun(const SlurmSettings& settings) {
  return settings.start == SlurmStart::srun || (settings.start == SlurmStart::automatic && in_allocation());
}

// A job of one node, seen from its own batch script.
bool is_on_this_machine(const Placement& placement) {
  const char* nodes = std::getenv("SLURM_JOB_NUM_NODES");
  return uses_srun(placement.request.launch.slurm) && placement.nodes == 1 && nodes != nullptr &&
         std::string_view(nodes) == "1" && std::getenv("SLURMD_NODENAME") != nullptr;
}

std::string place_of(const Placement& placement, const char* name) {
  return placement.request.paths.folder + "/" + name;
}

bool wants_mpirun(const Placement& placement) {
  return placement.program.start == RankStart::mpi && placement.request.launch.slurm.mpi == SlurmMpi::mpirun;
}

// Whether an image is not srun's own business.
bool uses_apptainer(const SlurmSettings& slurm) {
  return !slurm.container_image.empty() && slurm.container_program != SlurmContainer::pyxis;
}

// What each task of srun starts instead of its program.
Arguments container_command(const Placement& placement, const LaunchPlan& plan) {
  const LaunchRequest& request = placement.request;
  const SlurmSettings& slurm = request.launch.slurm;
  if (!uses_apptainer(slurm)) return {};
  const std::string home = slurm.container_mount_home ? "" : request.paths.folder;
  return apptainer_arguments({std::string(enum_name(slurm.container_program)),
                              request.platform,
                              slurm.container_image,
                              home,
                              plan.mounts,
                              plan.environment,
                              plan.working_directory,
                              {}});
}

void refuse_image_under_mpirun(const SlurmSettings& slurm) {
  if (slurm.container_image.empty()) return;
  throw Error(Problem{"mpirun inside the job starts no container", "launch.slurm.mpi",
                      "use pmix, which starts the ranks in the image, or leave out launch.slurm.container_image"});
}

// The command inside an allocation.
Arguments start_in_allocation(const Placement& placement, LaunchPlan& plan) {
  if (wants_mpirun(placement)) {
    refuse_image_under_mpirun(placement.request.launch.slurm);
    Arguments arguments = mpirun_over_nodes(placement, plan);
    append(arguments, placement.program.arguments);
    return arguments;
  }
  Arguments arguments = {"srun"};
  append(arguments, slurm_shape(placement));
  append(arguments, slurm_step(placement, plan));
  append(arguments, container_command(placement, plan));
  append(arguments,
         task_arguments(placement, plan, [] { return slurm_node_numbers("$SLURM_NODEID", "SLURM_STEP_NODELIST"); }));
  return arguments;
}

Arguments start_by_srun(const Placement& placement, LaunchPlan& plan) {
  Arguments arguments = start_in_allocation(placement, plan);
  if (in_allocation()) return arguments;
  if (wants_mpirun(placement))
    throw Error(Problem{"mpirun needs an existing Slurm allocation", "launch.slurm.mpi",
                        "submit a job instead: launch.slurm.start: sbatch"});
  const Arguments wishes = slurm_wishes(placement);
  arguments.insert(arguments.begin() + 1, wishes.begin(), wishes.end());
  return arguments;
}

// A word of an #SBATCH line. Unlike a shell, sbatch reads a backslash as an escape within quotes too.
std::string quote_option(const std::string& option) {
  if (quote_shell(option) == option) return option;
  std::string quoted = "'";
  for (const char c : option) quoted += c == '\\' || c == '\'' ? std::string{'\\', c} : std::string(1, c);
  return quoted + "'";
}

// A line break would start a script line that the shell executes.
void require_one_line(const std::string& option) {
  if (option.find_first_of("\n\r") == std::string::npos) return;
  throw Error(Problem{fmt::format("a job script cannot contain '{}': it has a line break", printable(option)),
                      "launch.slurm", "choose another --output or working directory, or launch.slurm.start: srun"});
}

// In an output path with a backslash, Slurm expands no patterns and drops the backslash.
void require_no_backslash(const std::string& path) {
  if (path.find('\\') == std::string::npos) return;
  throw Error(Problem{fmt::format("Slurm cannot write its output to '{}': the path contains a backslash", path),
                      "launch.slurm", "choose another --output, or launch.slurm.start: srun"});
}

// %x and others are patterns in the name of an output file.
std::string output_pattern(const std::string& path) {
  std::string pattern;
  for (const char c : path) pattern += c == '%' ? std::string("%%") : std::string(1, c);
  return pattern;
}

// A container has folders of its own, such as a framework's checkout.
std::string directory_here(const Placement& placement, const LaunchPlan& plan) {
  const bool in_container = !placement.request.launch.slurm.container_image.empty();
  return in_container ? placement.request.paths.working_directory : plan.working_directory;
}

std::string render_job_script(const Placement& placement, LaunchPlan& plan) {
  Arguments options = slurm_shape(placement);
  require_no_backslash(place_of(placement, "job.out"));
  append(options, {"--output=" + output_pattern(place_of(placement, "job.out")), "--open-mode=append",
                   "--chdir=" + directory_here(placement, plan)});
  append(options, slurm_wishes(placement));
  std::string text = "#!/bin/sh\n";
  for (const std::string& option : options) {
    require_one_line(option);
    text += "#SBATCH " + quote_option(option) + "\n";
  }
  for (const auto& [name, value] : plan.environment) text += "export " + name + "=" + quote_shell(value) + "\n";
  return text + "exec " + quote_command(start_in_allocation(placement, plan)) + "\n";
}

// A job has its own name; a step inside an existing allocation is found by its name among that job's steps. Slurm ends
// them after a while, and the next run needs their nodes.
std::string render_cancel_script(const Placement& placement) {
  return fmt::format(R"sh(#!/bin/sh
# Ends the job of this run, or its step in an allocation, where it is still there; waits until it is gone.
scancel --quiet --name={0} --user="$(id -un)"
list() {{
  squeue --noheader --name={0} --user="$(id -un)" --format=%i
  [ -z "$SLURM_JOB_ID" ] ||
    squeue --noheader --steps --jobs="$SLURM_JOB_ID" --format='%i %j' | sed -n 's/^\([^ ]*\) {0}$/\1/p'
}}
for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  left=$(list 2>/dev/null)
  [ -n "$left" ] || exit 0
  [ "$((round % 5))" -ne 1 ] || scancel --quiet $left
  sleep 1
done
echo "still there: $left" >&2
exit 1
)sh",
                     placement.name);
}

// A network file system refreshes a file when it is opened, so the output is reopened for each read.
std::string render_submit_script(const Placement& placement) {
  const std::string output = quote_shell(place_of(placement, "job.out"));
  return fmt::format(R"sh(#!/bin/sh
# Submits the job, shows its output as it comes, and ends with its exit status. A signal cancels the job, also where
# nobody reads what the shell has to say about it any more.
trap '' PIPE
: > {0}
cancel={1}
trap 'trap "" TERM INT HUP; sh "$cancel"; kill $follower 2>/dev/null; exit 143' TERM INT HUP
sbatch --wait {2} &
job=$!
tail -n +1 -s 0.2 -F {0} 2>/dev/null &
follower=$!
wait $job
status=$?
cat {0} >/dev/null
sleep 1
kill $follower
exit $status
)sh",
                     output, quote_shell(place_of(placement, "cancel.sh")), quote_shell(place_of(placement, "job.sh")));
}

void place_under_slurm(const Placement& placement, LaunchPlan& plan) {
  plan.waits_in_queue = !in_allocation();
  if (placement.nodes == 1) describe_single_node(placement, plan);
  const SlurmSettings& slurm = placement.request.launch.slurm;
  if (uses_apptainer(slurm)) hand_over_secrets(std::string(enum_name(slurm.container_program)), plan.environment);
  if (uses_srun(slurm)) {
    plan.command = start_by_srun(placement, plan);
  } else {
    plan.files.push_back({place_of(placement, "job.sh"), render_job_script(placement, plan)});
    plan.files.push_back({place_of(placement, "submit.sh"), render_submit_script(placement)});
    plan.command = {"sh", place_of(placement, "submit.sh")};
  }
  plan.files.push_back({place_of(placement, "cancel.sh"), render_cancel_script(placement)});
  plan.cleanup_command = {"sh", place_of(placement, "cancel.sh")};
  plan.place = is_on_this_machine(placement) ? Whereabouts::this_machine : Whereabouts::elsewhere;
  plan.working_directory = directory_here(placement, plan);
}

bool is_slurm_here(const LauncherSettings& settings) {
  return find_in_path("srun") && (uses_srun(settings.slurm) || find_in_path("sbatch"));
}

}  // namespace

// A Slurm job: srun inside an allocation or if configured, else a job script, which a small script submits, follows and
// cancels.
LauncherModule slurm_launcher() {
  return {Launcher::slurm,
          "Slurm",
          place_under_slurm,
          is_slurm_here,
          "srun or sbatch is not in PATH",
          "run this on a cluster node with srun and sbatch, or show the job with --dry-run"};
}

}  // namespace tprimat::suite
