#include "comm/mpi/module.h"

#include <mpi.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>

#include "base/sanitizers.h"
#include "comm/mpi/mpi_communicator.h"

#if TPRIMAT_ADDRESS_SANITIZER
#include <sanitizer/lsan_interface.h>
#endif

namespace tprimat::engine {
namespace {

// Open MPI leaves memory behind when it ends, and unloads the libraries by whose names it could be recognised. So the
// leak sanitizer overlooks what MPI_Init allocates, and looks for the last time while MPI still runs.
#if TPRIMAT_ADDRESS_SANITIZER
void overlook_leaks() { __lsan_disable(); }
void notice_leaks() { __lsan_enable(); }
void look_for_leaks() { __lsan_do_leak_check(); }
#else
void overlook_leaks() {}
void notice_leaks() {}
void look_for_leaks() {}
#endif

// Containers often forbid reading another process's memory; Open MPI would then warn with every run.
bool may_read_other_processes() {
  int value = 1, copy = 0;
  const iovec to{&copy, sizeof copy}, from{&value, sizeof value};
  return ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) == sizeof value;
}

// Settings that the user did not make (0: what the environment says stays).
void prepare_open_mpi() {
  if (!may_read_other_processes()) ::setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
  ::setenv("OMPI_MCA_btl_base_warn_component_unused", "0", 0);  // no word about networks that are not there
}

bool is_running() {
  int started = 0, ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  return started != 0 && ended == 0;
}

// Owns MPI itself. While an exception is on its way, the other ranks may never come to MPI_Finalize, which would wait
// for them: then the program reports the error first and calls abort_ranks.
class MpiWorld : public MpiCommunicator {
 public:
  MpiWorld() : MpiCommunicator(duplicate_world()) {}
  ~MpiWorld() override {
    if (std::uncaught_exceptions() > exceptions_) return;
    look_for_leaks();
    release();
    MPI_Finalize();
  }

 private:
  static MPI_Comm duplicate_world() {
    MPI_Comm world = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    return world;
  }
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace
}  // namespace tprimat::engine

// MPI's own errors end all ranks with a message (MPI_ERRORS_ARE_FATAL, its default).
extern "C" [[gnu::visibility("default")]] tprimat::engine::Communicator* tprimat_make_mpi_world() {
  tprimat::engine::prepare_open_mpi();
  int provided = 0;
  tprimat::engine::overlook_leaks();
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  tprimat::engine::notice_leaks();
  return new tprimat::engine::MpiWorld();
}

extern "C" [[gnu::visibility("default")]] void tprimat_abort_mpi(int status) {
  if (tprimat::engine::is_running()) MPI_Abort(MPI_COMM_WORLD, status);
}
