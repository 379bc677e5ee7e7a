#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tprimat::suite {

struct LaunchPlan;
struct LaunchRequest;

// What this program needs besides itself to run in a container that has neither it nor its libraries. Empty: there is
// none.
struct ProgramFiles {
  std::string trainer;                       // tprimat-train
  std::string loader;                        // ld-linux-x86-64.so.2
  std::vector<std::string> modules;          // libtprimat_nvd.so
  std::vector<std::string> library_folders;  // of the libraries that this program has loaded
};

// Those of this process.
ProgramFiles find_program_files();

// Whether the image lacks this program, so that it is mounted: an image that the configuration names, unless
// launch.program_inside says where it has one.
bool mounts_program(const LaunchRequest& request);

// The path of this program in the container.
std::string program_in_container(const LaunchRequest& request);

// FROM:TO:ro of each file and folder. Throws Error where a path holds a separator of a mount list.
std::vector<std::string> mounts_of_program(const LaunchRequest& request, std::string_view separators);

// The script under the name of program_in_container: it starts the mounted program with the loader and the libraries of
// the machine that it is from, so that the image needs none of them.
void add_start_script(const LaunchRequest& request, LaunchPlan& plan);
bool has_start_script(const LaunchPlan& plan);

}  // namespace tprimat::suite
