#pragma once

#include <memory>

#include "comm/communicator.h"

namespace tprimat::engine::gpu {

// A group of ranks that exchange what lies in their GPUs, over NCCL or RCCL, with the group of the same ranks on their
// hosts, which it takes over. Collective. Each rank's GPU is the one of context().
//
// A transfer begins when the work given to the GPU before it is done, and goes on beside the work given after it;
// wait() makes later work wait for it, and the host for nothing. Buffers in the host's memory go through the hosts'
// group.
//
// A rank or a link that is lost is found where the host waits for the GPU, as far as NCCL sees it (NCCL does not of a
// process of the same machine that died: there the launcher ends the others), and ends that wait with an Error.
//
// What NCCL leaves open of communicator.h:
// - The order of a sum is that of the algorithm (ring, tree, NVLink's switch) that NCCL picks by size and links. One
//   group adds up one size in the same order from call to call, and an all-reduce gives all ranks the same bits;
//   bf16 and f16 are rounded after each addition of a ring, not once; and an all-reduce may round otherwise than a
//   reduce-scatter that an all-gather follows. NCCL_ALGO and NCCL_PROTO fix the algorithm.
// - A maximum with NaN among its values may be any of the others.
// - Point to point there are no tags: of two ranks' messages in one direction those with tags below 16384 are matched
// in
//   the order in which both ends start them, and those from 16384 on for themselves.
std::unique_ptr<Communicator> make_gpu_communicator(std::unique_ptr<Communicator> host);

}  // namespace tprimat::engine::gpu
