#include "launch/profilers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "launch/argument_list.h"
#include "launch/installed.h"

namespace tprimat::suite {
namespace {

template <class Value>
bool lists(const std::vector<Value>& values, Value value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// https://docs.nvidia.com/nsight-systems/UserGuide/: nothing is recorded before cudaProfilerStart; after
// cudaProfilerStop the training goes on to its end, where `stop-shutdown` would kill it. The processor is not sampled,
// which slows it down.
Arguments nsys_arguments(const ProfileWindow& window) {
  Arguments arguments = {"nsys",
                         "profile",
                         "--output=" + window.trace,
                         "--force-overwrite=true",
                         "--trace=cuda,nvtx,osrt,cudnn,cublas",
                         "--sample=none",
                         "--cpuctxsw=none"};
  if (!window.whole_run) append(arguments, {"--capture-range=cudaProfilerApi", "--capture-range-end=stop"});
  return arguments;
}

// https://rocm.docs.amd.com/projects/rocprofiler-sdk: --selected-regions records between roctxProfilerResume(0) and
// roctxProfilerPause(0) alone; every process writes files of its own, so the name holds torchrun's rank.
Arguments rocprof_arguments(const ProfileWindow& window) {
  Arguments arguments = {"rocprofv3", "--runtime-trace", "--stats"};
  if (!window.whole_run) arguments.emplace_back("--selected-regions");
  append(arguments, {"--output-format", "pftrace", "csv", "-d", rocprof_folder(window), "-o", "rank%env{RANK}%", "--"});
  return arguments;
}

// Where a rank writes its trace; "{rank}" stands for its own number.
std::string rank_trace(const ProfileWindow& window, std::string_view rank) {
  return fmt::format("{}/rank_{}.json.gz", window.trace, rank);
}

std::string names_of(const std::vector<Profiler>& profilers) {
  std::string text;
  for (const Profiler each : profilers) text += (text.empty() ? "" : ", ") + std::string(enum_name(each));
  return text;
}

std::vector<Profiler> fitting_profilers(const FrameworkModule& framework, Platform platform) {
  std::vector<Profiler> fitting;
  for (const Profiler each : framework.profilers)
    if (lists(profiler_module(each).platforms, platform)) fitting.push_back(each);
  return fitting;
}

// The frameworks that can be profiled on the platform: "native, tran".
std::string list_profiled(Platform platform) {
  std::string text;
  for (const FrameworkModule& each : framework_modules())
    if (runs_on(each, platform) && !fitting_profilers(each, platform).empty())
      text += (text.empty() ? "" : ", ") + std::string(enum_name(each.id));
  return text;
}

}  // namespace

const std::vector<ProfilerModule>& profiler_modules() {
  using enum Platform;
  static const std::vector<ProfilerModule> modules = {
      {Profiler::nsys,
       "NVIDIA Nsight Systems",
       {nvd},
       "nsys",
       "sudo apt-get install nsight-systems-cli, from NVIDIA's package repository; or choose --profiler torch",
       ".nsys-rep"},
      {Profiler::rocprofv3,
       "AMD rocprofv3",
       {amd},
       "rocprofv3",
       "sudo apt-get install rocprofiler-sdk, from AMD's package repository, and add /opt/rocm/bin to PATH; or choose "
       "--profiler torch",
       ".pftrace"},
      {Profiler::torch, "PyTorch profiler", {nvd, amd, cpu}, "", "", ".json.gz"},
      {Profiler::own, "the trainer's own clock", {nvd, amd, cpu}, "", "", ".json"},
  };
  return modules;
}

const ProfilerModule& profiler_module(Profiler id) {
  const auto& modules = profiler_modules();
  return *std::find_if(modules.begin(), modules.end(), [&](const ProfilerModule& each) { return each.id == id; });
}

Profiler choose_profiler(const FrameworkModule& framework, Platform platform, std::optional<Profiler> asked) {
  const std::vector<Profiler> fitting = fitting_profilers(framework, platform);
  if (fitting.empty())
    throw Error(Problem{fmt::format("no profiler supports the framework '{}' on the platform {}",
                                    enum_name(framework.id), enum_name(platform)),
                        "--framework", "choose one of " + list_profiled(platform)});
  if (!asked) return fitting.front();
  if (lists(fitting, *asked)) return *asked;
  throw Error(Problem{fmt::format("{} does not support the framework '{}' on the platform {}", enum_name(*asked),
                                  enum_name(framework.id), enum_name(platform)),
                      "--profiler", "choose auto, or one of " + names_of(fitting)});
}

bool marks_steps(const FrameworkModule& framework, Profiler profiler) { return !lists(framework.unmarked, profiler); }

void require_profiler(const ProfilerModule& profiler) {
  if (profiler.program.empty() || find_in_path(std::string(profiler.program))) return;
  throw Error(Problem{fmt::format("cannot find {} ({})", profiler.program, profiler.long_name), "PATH",
                      std::string(profiler.installing)},
              ExitStatus::missing_component);
}

std::string trace_file(const ProfileWindow& window) {
  return window.trace + std::string(profiler_module(window.profiler).ending);
}

std::string print_window(const ProfileWindow& window) {
  const std::string steps = fmt::format("{}:{}", window.first_step, window.last_step);
  switch (window.profiler) {
    case Profiler::nsys: return "cuda:" + steps;
    case Profiler::rocprofv3: return "roctx:" + steps;
    case Profiler::torch: break;
    case Profiler::own: break;
  }
  return fmt::format("{}:{}:{}", enum_name(window.profiler), steps,
                     window.of_every_rank ? rank_trace(window, "{rank}") : trace_file(window));
}

ProfileWindow choose_further_steps(const FrameworkModule& framework, const LaunchRequest& request, int64_t count) {
  if (!framework.further_steps)
    throw Error(Problem{
        fmt::format("no steps are profiled: the program of {} ends with the last measured step", framework.long_name),
        "experiment.profile_steps", "profile it with tprimat profile"});
  if (request.launch.launcher == Launcher::kubernetes)
    throw Error(Problem{"no steps are profiled: the traces would stay on the cluster", "experiment.profile_steps",
                        "choose another launcher"});
  const int64_t first = request.spec.steps + 2;
  return {.profiler = *framework.further_steps,
          .first_step = first,
          .last_step = first + count - 1,
          .trace = rank_traces_folder(request.paths),
          .of_every_rank = true};
}

std::string rank_traces_folder(const RunPaths& paths) { return paths.folder + "/profile"; }

std::string trace_of_rank(const ProfileWindow& window, int64_t rank) {
  return rank_trace(window, std::to_string(rank));
}

std::string rocprof_folder(const ProfileWindow& window) { return window.trace + "_rocprofv3"; }

std::string torch_trace_folder(const RunPaths& paths) { return paths.folder + "/torch_profile/tensorboard"; }

void add_profiler(LaunchPlan& plan, const LaunchRequest& request) {
  const ProfileWindow& window = *request.profile;
  if (request.launch.launcher != Launcher::local)
    throw Error(Problem{
        fmt::format("profiling works on this machine only, but the launcher is {}", enum_name(request.launch.launcher)),
        "launch.launcher", "choose --launcher local"});
  Arguments arguments;
  if (window.profiler == Profiler::nsys) arguments = nsys_arguments(window);
  if (window.profiler == Profiler::rocprofv3) arguments = rocprof_arguments(window);
  plan.command.insert(plan.command.begin(), arguments.begin(), arguments.end());
  if (!window.whole_run) plan.environment["TPRIMAT_PROFILE"] = print_window(window);
  plan.trace_path = trace_file(window);
}

}  // namespace tprimat::suite
