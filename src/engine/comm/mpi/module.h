#pragma once

#include "comm/communicator.h"

// What the program knows of the module libtprimat_mpi.so: two C functions, found by name. No exception crosses them.
namespace tprimat::engine {

// Starts MPI, once in a process, and gives the communicator of all its ranks; the caller owns it. Its end is MPI's end.
using MakeMpiWorld = Communicator* (*)();
constexpr const char* k_make_mpi_world = "tprimat_make_mpi_world";

// Ends all ranks with this status when MPI was started and has not ended; else does nothing.
using AbortMpi = void (*)(int status);
constexpr const char* k_abort_mpi = "tprimat_abort_mpi";

}  // namespace tprimat::engine
