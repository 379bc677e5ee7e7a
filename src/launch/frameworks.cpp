#include "launch/frameworks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "launch/deep.h"
#include "launch/fsdp.h"
#include "launch/native.h"
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
  static const std::vector<FrameworkModule> modules = {
      {Framework::native, "native C++ trainer", {Platform::cpu}, find_native, plan_native},
      {Framework::tran, "HF Transformers", {Platform::nvd, Platform::amd, Platform::cpu}, find_tran, plan_tran},
      {Framework::fsdp, "PyTorch FSDP2", {Platform::nvd, Platform::amd, Platform::cpu}, find_fsdp, plan_fsdp},
      {Framework::deep, "DeepSpeed", {Platform::nvd, Platform::amd, Platform::cpu}, find_deep, plan_deep},
  };
  return modules;
}

bool runs_on(const FrameworkModule& module, Platform platform) {
  return std::find(module.platforms.begin(), module.platforms.end(), platform) != module.platforms.end();
}

const FrameworkModule& require_framework(Framework id, Platform platform, Presence presence) {
  const auto& modules = framework_modules();
  const auto found =
      std::find_if(modules.begin(), modules.end(), [&](const FrameworkModule& each) { return each.id == id; });
  if (found == modules.end()) refuse(fmt::format("this version cannot launch the framework '{}'", enum_name(id)));
  if (!runs_on(*found, platform))
    refuse(fmt::format("the framework '{}' does not run on the platform {}", enum_name(id), enum_name(platform)));
  if (presence == Presence::installed && !found->find())
    throw Error(Problem{fmt::format("the framework '{}' is not installed", enum_name(id)), "--framework",
                        fmt::format("frameworks/setup.sh {} installs it", enum_name(id))},
                ExitStatus::missing_component);
  return *found;
}

}  // namespace tprimat
