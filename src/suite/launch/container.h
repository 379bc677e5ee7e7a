#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/launch_plan.h"

namespace tprimat::suite {

// What builds images: docker if it is in PATH, else podman; nothing if neither is.
std::optional<ContainerProgram> find_container_program();

// Arguments of `docker run`.
struct ContainerRun {
  ContainerProgram program = ContainerProgram::docker;
  Platform platform = Platform::cpu;
  std::string name, image, shm_size;   // shm_size empty: the host's shared memory
  std::vector<std::string> options;    // "--detach"
  bool is_kept = false;                // with its output, when it has ended; else it is removed
  std::vector<std::string> volumes;    // FROM:TO
  std::vector<std::string> variables;  // by name; their values come from the caller's environment
  std::string working_directory;
  std::vector<std::string> arguments;  // further arguments before the image
  std::vector<std::string> command;    // of the process in it
};

// "docker run --rm --init --name ... IMAGE WORDS": with the platform's GPUs and as much memory for sharing and pinning
// as collectives want.
std::vector<std::string> container_arguments(const ContainerRun& run);

// The image of a platform as `tprimat docker build` names it: "tprimat:nvd".
std::string default_image(Platform platform);

// The image of a launcher that starts one.
std::string image_of(const LauncherSettings& launch, Platform platform);

// Throws Error where the path holds a separator of a mount list.
void require_mountable(const std::string& path, std::string_view separators, const std::string& where,
                       const std::string& remedy);

// FROM:TO of a folder under its own name. Throws Error as require_mountable does.
std::string mount_of_folder(const std::string& folder, std::string_view separators, const std::string& where,
                            const std::string& remedy);

// The same for the folders that a run needs; then, where the image lacks this program, `with_program`, its files; then
// those that the configuration adds.
std::vector<std::string> list_mounts(const LaunchRequest& request, bool with_program);

// Folders that a run reads or writes, absolute, none inside another.
std::vector<std::string> folders_needed(const LaunchRequest& request);

}  // namespace tprimat::suite
