#pragma once

#include <optional>
#include <string>
#include <vector>

#include "spec/launcher_settings.h"
#include "spec/names.h"
#include "spec/train_spec.h"
#include "text/fields.h"

namespace tprimat {

// The installation of a framework that a run was asked for, where the configuration has several.
struct InstallationFacts {
  std::string label;
  std::optional<std::string> folder = {}, image = {}, python = {};
  static constexpr auto fields() {
    using I = InstallationFacts;
    return field_list(field("label", &I::label, "its name in the configuration"),
                      field("folder", &I::folder, "folder of its checkout or Python environment"),
                      field("image", &I::image, "container image"),
                      field("python", &I::python, "path of its Python in that image"));
  }
  bool operator==(const InstallationFacts&) const = default;
};

// Settings of a run outside its TrainSpec. The suite writes them beside the specification, as launch.json, so that
// anybody can recompute the hash from the two.
struct LaunchFacts {
  Framework framework = Framework::native;
  Platform platform = Platform::cpu;
  PlatformSettings settings = {};
  Launcher launcher = Launcher::local;
  int64_t nodes = 1;
  std::string checkpoint_directory = {};
  std::optional<std::vector<std::string>> arguments = {};
  std::optional<InstallationFacts> installation = {};
  std::optional<int64_t> fixed_warmup_steps = {};  // this and the next are not in the hash
  std::optional<double> usd_per_hour = {};
  static constexpr auto fields() {
    using L = LaunchFacts;
    return field_list(field("framework", &L::framework, "framework that trains"),
                      field("platform", &L::platform, "platform of the devices"),
                      field("platform_settings", &L::settings, "settings of the platform that were asked for"),
                      field("launcher", &L::launcher, "launcher that starts the ranks"),
                      field("nodes", &L::nodes, "nodes of the training"),
                      field("checkpoint_directory", &L::checkpoint_directory,
                            "folder of the checkpoints as asked for; the trainer's specification may name another"),
                      field("arguments", &L::arguments, "additional arguments of the framework's program"),
                      field("installation", &L::installation,
                            "installation of the framework; absent: the only one, or the usual one"),
                      field("fixed_warmup_steps", &L::fixed_warmup_steps,
                            "steps to leave out of the steady state; absent: the end of the warm-up is detected"),
                      field("usd_per_hour", &L::usd_per_hour, "price of all devices of the run"));
  }
};

// Identifies a training request: runs with the same hash have the same request. 64-bit FNV-1a of the TrainSpec's
// one-line JSON, a newline, the platform, a newline, the framework, and, where the platform has settings, a newline and
// their one-line JSON; likewise the launcher and its nodes unless the ranks just start on this machine, additional
// arguments as a JSON list, and a chosen installation as one-line JSON:
// "fnv1a64:00d2a64f9c1b7e35". It distinguishes configurations; it does not protect against forgery.
std::string hash_config(const TrainSpec& spec, const LaunchFacts& launch);

// The hash of a specification exactly as in the trainer's file, without fields that later versions added.
std::string hash_config_of_file(Json spec, const LaunchFacts& launch);

Json launch_facts_to_json(const LaunchFacts& facts);
LaunchFacts launch_facts_from_json(const Json& json, const std::string& where);  // throws Error

}  // namespace tprimat
