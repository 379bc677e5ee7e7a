#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "base/program_module.h"
#include "base/sanitizers.h"
#include "comm/communicator.h"
#include "comm/launcher_place.h"
#include "comm/mpi/module.h"
#include "comm/tcp/tcp_communicator.h"

#if TPRIMAT_ADDRESS_SANITIZER
// What PMIx, below Open MPI, leaves behind; the module overlooks the rest. The library is named, which needs no
// symbols.
extern "C" const char* __lsan_default_suppressions() { return "leak:libpmix.so\n"; }
#endif

namespace tprimat::engine {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& hint) {
  throw Error(Problem{what, "MPI", hint}, ExitStatus::missing_component);
}

// The module leaves MPI's functions undefined: which Open MPI has them is the machine's matter.
ModuleFile mpi_module() {
  return {
      "libtprimat_mpi.so",
      "MPI",
      "this program was started as one rank of several",
      "install libopenmpi-dev and openmpi-bin, then rebuild: the build puts the module beside the program",
      "install Open MPI 4 or 5 (Debian, Ubuntu: sudo apt-get install openmpi-bin), or start the ranks with torchrun, "
      "which needs no MPI",
      {"libmpi.so.40", "libmpi.so"}};
}

AbortMpi abort_mpi = nullptr;  // set once MPI may be running

std::unique_ptr<Communicator> make_mpi_world(const LauncherPlace& place) {
  const ProgramModule module(mpi_module());
  const auto make = module.function<MakeMpiWorld>(k_make_mpi_world);
  abort_mpi = module.function<AbortMpi>(k_abort_mpi);
  std::unique_ptr<Communicator> world(make());
  if (world->size() == place.size) return world;
  refuse(fmt::format("the launcher started {} ranks, but MPI sees {}", place.size, world->size()),
         "use a launcher that MPI recognizes: Open MPI's mpirun, or srun --mpi=pmix");
}

}  // namespace

std::unique_ptr<Communicator> make_world_communicator() {
  const LauncherPlace place = launcher_place();
  if (place.size == 1) return make_self_communicator();
  if (place.rendezvous == RendezvousKind::tcp) return make_tcp_world(read_rendezvous_settings(read_environment, place));
  return make_mpi_world(place);
}

void abort_ranks(int status) {
  if (abort_mpi != nullptr) abort_mpi(status);
  abort_tcp(status);
}

}  // namespace tprimat::engine
