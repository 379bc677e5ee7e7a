#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "comm/communicator.h"
#include "comm/mpi/module.h"

#if defined(__SANITIZE_ADDRESS__)
// What the thread of PMIx, below Open MPI, leaves behind; the module overlooks the rest. Asked of the program itself.
extern "C" const char* __lsan_default_suppressions() { return "leak:pmix_hash_fetch\n"; }
#endif

namespace tprimat {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_module_name = "libtprimat_mpi.so";

[[noreturn]] void refuse(const std::string& what, const std::string& hint) {
  throw Error(Problem{what, "MPI", hint}, ExitStatus::missing_component);
}

// Beside the program, as it is built; or in ../lib/tprimat, as it is installed.
fs::path find_module() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& path : {folder / k_module_name, folder.parent_path() / "lib" / "tprimat" / k_module_name})
    if (fs::exists(path)) return path;
  refuse(fmt::format("this program was started as one rank of several, but {} is not in {}", k_module_name,
                     folder.string()),
         "install libopenmpi-dev and openmpi-bin, then build again: the module is put beside the program");
}

// Open MPI loads parts of its own that look for its symbols in the whole process, hence RTLD_GLOBAL. It is never
// unloaded.
void* open_module(const fs::path& path) {
  if (void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return module;
  const char* reason = ::dlerror();
  refuse(fmt::format("{} cannot be loaded: {}", path.string(), reason != nullptr ? reason : "no reason given"),
         "sudo apt-get install openmpi-bin libopenmpi3");
}

template <class Function>
Function find_symbol(void* module, const char* name) {
  if (void* symbol = ::dlsym(module, name)) return reinterpret_cast<Function>(symbol);
  refuse(fmt::format("{} has no {}: it belongs to another version of this program", k_module_name, name),
         "build the whole program again");
}

AbortMpi abort_mpi = nullptr;  // set once MPI may be running

}  // namespace

std::unique_ptr<Communicator> make_world_communicator() {
  const LauncherPlace place = launcher_place();
  if (place.size == 1) return make_self_communicator();
  void* module = open_module(find_module());
  const auto make = find_symbol<MakeMpiWorld>(module, k_make_mpi_world);
  abort_mpi = find_symbol<AbortMpi>(module, k_abort_mpi);
  std::unique_ptr<Communicator> world(make());
  if (world->size() == place.size) return world;
  refuse(fmt::format("the launcher started {} ranks, but MPI sees {}", place.size, world->size()),
         "the launcher and MPI do not know each other: start with Open MPI's mpirun, or with srun --mpi=pmix");
}

void abort_ranks(int status) {
  if (abort_mpi != nullptr) abort_mpi(status);
}

}  // namespace tprimat
