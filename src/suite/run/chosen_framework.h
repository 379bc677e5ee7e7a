#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/experiment.h"
#include "launch/frameworks.h"
#include "spec/config_hash.h"

namespace tprimat::suite {

// A framework in the installation that was chosen, and the launcher with that installation's image.
struct ChosenFramework {
  const FrameworkModule* module = nullptr;
  std::optional<InstallationFacts> installation;  // nothing: as `paths` states, or the usual one
  Checkout checkout;
  LauncherSettings launch;

  std::string name() const;                            // "mega@a"
  std::optional<Installation> find_installed() const;  // nothing also for an image, which brings the framework with it
  void require_installed(Platform platform) const;     // throws Error (missing_component), for an image never
};

// Throws Error (usage) for a label that the configuration does not have, and for an installation that the launcher
// cannot start. `where` names what made the choice.
ChosenFramework choose_installation(const Experiment& experiment, const FrameworkModule& module,
                                    const FrameworkChoice& choice, Platform platform, const std::string& where);

}  // namespace tprimat::suite
