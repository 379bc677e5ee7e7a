#pragma once

#include <string>

#include "spec/launcher_settings.h"
#include "spec/platform_settings.h"
#include "spec/train_spec.h"

namespace tprimat {

// Names one training: two runs with the same hash were asked for the same thing. 64-bit FNV-1a of the TrainSpec's
// one-line JSON, a newline, the platform, a newline, the framework, and, where the platform has settings, a newline and
// their one-line JSON; likewise the launcher and its nodes unless the ranks just start on this machine:
// "fnv1a64:00d2a64f9c1b7e35". It tells configurations apart; it is no protection against forgery.
std::string hash_config(const TrainSpec& spec, Framework framework, Platform platform, const PlatformSettings& settings,
                        const LauncherSettings& launch = {});

}  // namespace tprimat
