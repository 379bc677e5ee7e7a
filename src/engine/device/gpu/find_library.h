#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tprimat::engine::gpu {

// A vendor's library that is loaded when it is first needed, so that a machine without it runs everything else.
struct WantedLibrary {
  std::string title;                  // "cuBLASLt"
  std::vector<std::string> names;     // "libcublasLt.so.13"; the first that is found counts
  std::vector<std::string> packages;  // folders below a Python installation's packages: "nvidia/cu13/lib"
  std::string variable;               // environment variable that names the file itself
  std::string remedy;
  // Libraries in the same folder that it opens by their bare names, where the linker would not look: how these begin.
  // They are opened beside it.
  std::vector<std::string> beside = {};
};

// One variable of the environment; nothing when it is not set.
using ReadVariable = std::function<std::optional<std::string>(const std::string& name)>;

// The file of this process's program; empty if /proc is not available.
std::filesystem::path own_program();

// Folders in which Python keeps packages: of the environment in which `program` is installed
// (lib/tprimat/tprimat-train), of the active environment, of the python3 first in PATH, of the user, of the machine.
// Python packages of the vendors' libraries, which PyTorch brings too, lay them there.
std::vector<std::filesystem::path> python_package_folders(const ReadVariable& read,
                                                          const std::filesystem::path& program = own_program());

// Where the library may be, in the order in which the places are tried: all places of the first name, then those of the
// next; a bare name asks the dynamic linker.
std::vector<std::string> library_candidates(const WantedLibrary& wanted, const ReadVariable& read);

// The library, which stays open. Throws Error (missing component) where no candidate can be loaded.
void* open_library(const WantedLibrary& wanted);
// The file of an open library.
std::filesystem::path library_file(void* library);
// Opens the shared libraries in the folder of `file` whose names begin so. Throws Error (missing component) where one
// of them cannot be loaded.
void open_beside(const std::filesystem::path& file, const std::vector<std::string>& beginnings);
// The function `name` of an open library; null where it has none.
void* find_function(void* library, const char* name);

// As find_function, and throws Error where there is none.
void* need_function(void* library, const WantedLibrary& wanted, const char* name);

}  // namespace tprimat::engine::gpu
