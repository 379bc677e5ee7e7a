#include "run/chosen_framework.h"

#include <fmt/format.h>

#include <filesystem>

namespace tprimat::suite {
namespace {

std::string place_of(const FrameworkModule& module, const std::string& label) {
  return fmt::format("frameworks.{}.installations.{}", enum_name(module.id), label);
}

std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// A checkout is mounted into the container; an environment of this machine does not run there.
void use_folder(const InstallationEntry& entry, ChosenFramework& chosen) {
  const FrameworkModule& module = *chosen.module;
  if (module.is_environment && chosen.launch.in_container())
    throw Error(Problem{fmt::format("{} is a Python environment of this machine, but the launcher {} starts an image",
                                    chosen.name(), enum_name(chosen.launch.launcher)),
                        place_of(module, entry.label), "state the image of this version, or use the launcher local"});
  chosen.checkout.installation = std::filesystem::absolute(entry.folder).lexically_normal().string();
  if (chosen.checkout.primus) chosen.checkout.primus = chosen.checkout.installation;  // or a checkout of Primus
}

std::string& image_setting(LauncherSettings& launch) {
  if (launch.launcher == Launcher::kubernetes) return launch.kubernetes.image;
  return launch.launcher == Launcher::docker ? launch.docker.image : launch.slurm.container_image;
}

void use_image(const InstallationEntry& entry, ChosenFramework& chosen) {
  LauncherSettings& launch = chosen.launch;
  if (launch.launcher == Launcher::local || launch.launcher == Launcher::mpi)
    throw Error(Problem{fmt::format("{} is an image, but the launcher {} starts no container", chosen.name(),
                                    enum_name(launch.launcher)),
                        place_of(*chosen.module, entry.label),
                        "use --launcher docker, kubernetes, or slurm with pyxis or Apptainer"});
  image_setting(launch) = entry.image;
  if (!entry.python.empty())
    launch.python_inside = entry.python;
  else if (chosen.module->is_environment && !entry.folder.empty())
    launch.python_inside = entry.folder + "/bin/python3";
  chosen.checkout.installation = entry.folder;
  if (chosen.checkout.primus) chosen.checkout.primus = "";  // that of the image
  chosen.checkout.in_image = true;
}

}  // namespace

std::string ChosenFramework::name() const {
  return FrameworkChoice(module->id, installation ? std::optional(installation->label) : std::nullopt).name();
}

std::optional<Installation> ChosenFramework::find_installed() const {
  return launch.in_container() ? std::nullopt : module->find(checkout);
}

void ChosenFramework::require_installed(Platform platform) const {
  if (launch.in_container()) return;
  if (installation && !module->find(checkout))
    throw Error(Problem{fmt::format("there is no {} in {}", module->long_name, checkout.installation),
                        place_of(*module, installation->label),
                        module->is_environment ? "state the folder of a Python environment that has it"
                                               : "state the folder of its checkout"},
                ExitStatus::missing_component);
  suite::require_installed(*module, checkout, platform);
}

ChosenFramework choose_installation(const Experiment& experiment, const FrameworkModule& module,
                                    const FrameworkChoice& choice, Platform platform, const std::string& where) {
  ChosenFramework chosen{&module, {}, checkout_of(module, experiment.paths, platform), experiment.launch};
  if (!choice.label) return chosen;
  if (const auto problem = find_unknown_installation(experiment, choice, where)) throw Error(*problem);
  const InstallationEntry& entry = *experiment.setup_of(module.id).find_installation(*choice.label);
  chosen.installation =
      InstallationFacts{entry.label, unless_empty(entry.folder), unless_empty(entry.image), unless_empty(entry.python)};
  if (entry.image.empty())
    use_folder(entry, chosen);
  else
    use_image(entry, chosen);
  return chosen;
}

}  // namespace tprimat::suite
