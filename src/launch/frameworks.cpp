#include "launch/frameworks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "launch/deep.h"
#include "launch/fsdp.h"
#include "launch/launchers.h"
#include "launch/native.h"
#include "launch/platform_environment.h"
#include "launch/tran.h"

namespace tprimat {
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

}  // namespace

const std::vector<FrameworkModule>& framework_modules() {
  using enum Platform;
  static const std::vector<FrameworkModule> modules = {
      {Framework::native, "native C++ trainer", {cpu}, find_native, plan_native, "it is part of this program", ""},
      {Framework::tran, "HF Transformers", {nvd, amd, cpu}, find_tran, plan_tran,
       "frameworks/setup.sh tran installs it", ""},
      {Framework::fsdp, "PyTorch FSDP2", {nvd, amd, cpu}, find_fsdp, plan_fsdp, "frameworks/setup.sh fsdp installs it",
       ""},
      {Framework::deep, "DeepSpeed", {nvd, amd, cpu}, find_deep, plan_deep, "frameworks/setup.sh deep installs it", ""},
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

void require_installed(const FrameworkModule& module, const Checkout& checkout) {
  if (module.find(checkout)) return;
  throw Error(Problem{fmt::format("the framework '{}' is not installed", enum_name(module.id)), "--framework",
                      std::string(module.installing)},
              ExitStatus::missing_component);
}

LaunchPlan plan_launch(const FrameworkModule& module, const LaunchRequest& request) {
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
  return plan;
}

}  // namespace tprimat
