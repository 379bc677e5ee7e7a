#include "launch/frameworks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "launch/deep.h"
#include "launch/fsdp.h"
#include "launch/launchers.h"
#include "launch/mega.h"
#include "launch/mgds.h"
#include "launch/native.h"
#include "launch/nemo.h"
#include "launch/platform_environment.h"
#include "launch/prim.h"
#include "launch/profilers.h"
#include "launch/tran.h"

namespace tprimat::suite {
namespace {

std::string describe_available() {
  std::string text;
  for (const FrameworkModule& module : framework_modules()) {
    std::string platforms;
    for (const Platform platform : module.platforms)
      platforms += (platforms.empty() ? "" : ", ") + std::string(enum_name(platform));
    text += fmt::format("{}{} (on {})", text.empty() ? "" : "; ", enum_name(module.id), platforms);
  }
  return text;
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Problem{what, "--framework", "available: " + describe_available()}, ExitStatus::missing_component);
}

void refuse_compact_optimizer(const FrameworkModule& module, const OptimizerSpec& optimizer) {
  if (module.id == Framework::native || !optimizer.is_compact()) return;
  throw Error(
      Problem{fmt::format("{} uses its own formats for weights and moments; tprimat cannot set them", module.long_name),
              optimizer.master_weights ? "training.optimizer.moments" : "training.optimizer.master_weights",
              "leave out moments and master_weights, or choose the framework native"});
}

}  // namespace

const std::vector<FrameworkModule>& framework_modules() {
  using enum Platform;
  static const std::vector<Platform> all = {nvd, amd, cpu}, gpus = {nvd, amd};
  static const std::vector<Profiler> own_profilers = {Profiler::own, Profiler::nsys, Profiler::rocprofv3};
  static const std::vector<Profiler> python_profilers = {Profiler::nsys, Profiler::rocprofv3, Profiler::torch};
  static const std::vector<Profiler> nsys = {Profiler::nsys};
  static const std::vector<FrameworkModule> modules = {
      {Framework::native, "native C++ trainer", all, find_native, plan_native, "it is part of this program", "",
       own_profilers, lacking_of_native},
      {Framework::tran, "HF Transformers", all, find_tran, plan_tran, "run frameworks/setup.sh tran", "",
       python_profilers},
      {Framework::fsdp, "PyTorch FSDP2", all, find_fsdp, plan_fsdp, "run frameworks/setup.sh fsdp", "",
       python_profilers},
      {Framework::deep, "DeepSpeed", all, find_deep, plan_deep, "run frameworks/setup.sh deep", "", python_profilers},
      {Framework::mega, "Megatron-LM", gpus, find_mega, plan_mega,
       "set paths.megatron.installation or MEGATRON_PATH to its checkout", "megatron", nsys},
      {Framework::mgds, "Megatron-DeepSpeed", gpus, find_mgds, plan_mgds,
       "set paths.megatron_deepspeed.installation or MEGATRON_DEEPSPEED_PATH to its checkout", "megatron_deepspeed",
       nsys},
      {Framework::nemo, "NVIDIA NeMo (Megatron-Bridge)", std::vector{nvd}, find_nemo, plan_nemo,
       "run in NVIDIA's NeMo container, or run frameworks/setup.sh nemo", "nemo"},
      {Framework::prim, "AMD Primus (Megatron)", std::vector{amd}, find_prim, plan_prim,
       "git clone --recurse-submodules https://github.com/AMD-AGI/Primus, and set PRIMUS_PATH to its folder", "primus"},
  };
  return modules;
}

bool runs_on(const FrameworkModule& module, Platform platform) {
  return std::find(module.platforms.begin(), module.platforms.end(), platform) != module.platforms.end();
}

const FrameworkModule& require_framework(Framework id, Platform platform) {
  const auto& modules = framework_modules();
  const auto found =
      std::find_if(modules.begin(), modules.end(), [&](const FrameworkModule& each) { return each.id == id; });
  if (found == modules.end()) refuse(fmt::format("this version cannot launch the framework '{}'", enum_name(id)));
  if (!runs_on(*found, platform))
    refuse(fmt::format("the framework '{}' does not run on the platform {}", enum_name(id), enum_name(platform)));
  return *found;
}

std::optional<Problem> find_lacking(const FrameworkModule& module, Platform platform) {
  return module.lacking_on == nullptr ? std::nullopt : module.lacking_on(platform);
}

void require_installed(const FrameworkModule& module, const Checkout& checkout, Platform platform) {
  if (!module.find(checkout))
    throw Error(Problem{fmt::format("the framework '{}' is not installed", enum_name(module.id)), "--framework",
                        std::string(module.installing)},
                ExitStatus::missing_component);
  if (const auto problem = find_lacking(module, platform)) throw Error(*problem, ExitStatus::missing_component);
}

void add_training_only_deviations(TrainProgram& program, const TrainSpec& spec) {
  if (spec.evaluation.interval > 0)
    program.deviations.push_back({"evaluation", fmt::format("after every {} steps", spec.evaluation.interval), "none"});
  if (!spec.checkpoint.directory.empty()) program.deviations.push_back({"checkpoints", "saved", "not saved"});
}

LaunchPlan plan_launch(const FrameworkModule& module, const LaunchRequest& request) {
  refuse_compact_optimizer(module, request.spec.optimizer);
  TrainProgram program = module.plan(request);
  LaunchPlan plan;
  plan.environment = platform_environment(request);
  plan.environment.merge(program.environment);  // what the configuration states wins
  const std::string& own = program.working_directory;
  plan.working_directory = own.empty() ? request.paths.working_directory : own;
  plan.files = std::move(program.files);
  plan.log_path = request.paths.log;
  plan.steps_path = std::move(program.steps_path);
  plan.checkpoints_path = std::move(program.checkpoints_path);
  plan.result_path = request.paths.result;
  place_ranks(program, request, plan);
  if (request.profile) add_profiler(plan, request);
  plan.deviations = std::move(program.deviations);
  return plan;
}

}  // namespace tprimat::suite
