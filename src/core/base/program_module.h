#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tprimat {

// A part of this program in a separate library, because it needs libraries that most runs do not.
struct ModuleFile {
  std::string name;                         // "libtprimat_mpi.so"
  std::string where;                        // of its errors: "MPI"
  std::string wanted_for;                   // "this program was started as one rank of several"
  std::string when_missing;                 // how to build it
  std::string when_broken;                  // how to install what it needs
  std::vector<std::string> libraries = {};  // the first of these that opens has what the module leaves undefined
};

// The path: beside the program in a build, in ../lib/tprimat when installed.
std::optional<std::filesystem::path> find_program_module(const std::string& name);

// Loaded from there; never unloaded. Throws Error where it is missing, cannot be loaded or is of another version.
class ProgramModule {
 public:
  explicit ProgramModule(ModuleFile file);

  template <class Function>
  Function function(const char* name) const {
    return reinterpret_cast<Function>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;
  ModuleFile file_;
  void* library_ = nullptr;
};

}  // namespace tprimat
