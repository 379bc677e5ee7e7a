#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/launch_plan.h"
#include "spec/names.h"

namespace tprimat {

// How a framework was found on this machine.
struct Installation {
  std::string version;
  std::string place;  // "built in", a folder
};

// Everything the suite knows about one framework.
struct FrameworkModule {
  Framework id;
  std::string_view long_name;
  std::vector<Platform> platforms;
  std::optional<Installation> (*find)();  // nothing: not installed
  LaunchPlan (*plan)(
      const LaunchRequest&);  // pure: writes and starts nothing; throws Error for what the framework cannot do
};

// All of them, in the order of menus and tables.
const std::vector<FrameworkModule>& framework_modules();

// Whether a plan is to be carried out here, or only shown.
enum class Presence { installed, any };

// Throws Error (ExitStatus::missing_component) that says what is available when the framework is not, not on that
// platform, or not installed.
const FrameworkModule& require_framework(Framework id, Platform platform, Presence presence = Presence::installed);

bool runs_on(const FrameworkModule& module, Platform platform);

}  // namespace tprimat
