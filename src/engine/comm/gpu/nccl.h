#pragma once

// NCCL and RCCL, which share their names: the few declarations that we need of nccl.h (2.10 and newer). The library is
// loaded when the first group of GPUs is made (device/gpu/find_library.h).
#include <cstddef>
#include <cstdint>

#include "comm/gpu/nccl_numbers.h"
#include "device/gpu/runtime.h"

namespace tprimat::engine::gpu::nccl {

using Status = int;  // zero: success
using Group = void*;
struct UniqueId {
  char bytes[vendor::k_unique_id_bytes];
};

inline constexpr int k_int8 = vendor::ncclInt8, k_int32 = vendor::ncclInt32, k_int64 = vendor::ncclInt64,
                     k_float16 = vendor::ncclFloat16, k_float32 = vendor::ncclFloat32, k_float64 = vendor::ncclFloat64,
                     k_bfloat16 = vendor::ncclBfloat16;
inline constexpr int k_sum = vendor::ncclSum, k_max = vendor::ncclMax;
inline constexpr Status k_in_progress = vendor::ncclInProgress;

struct NcclCalls {
  Status (*make_id)(UniqueId*);
  Status (*join)(Group*, int ranks, UniqueId, int rank);  // waits for the other ranks
  Status (*leave)(Group);
  Status (*abort)(Group);  // what is under way ends unfinished
  // What went wrong since with work that was given: another rank, or the network, is lost.
  Status (*async_error)(Group, Status*);
  // Several groups abort at once: one after the other, the first may wait for work of the next (NCCL 2.22 and newer).
  Status (*group_start)();
  Status (*group_end)();
  Status (*all_reduce)(const void* from, void* to, size_t count, int type, int reduction, Group, Stream);
  Status (*all_gather)(const void* own, void* all, size_t own_count, int type, Group, Stream);
  Status (*reduce_scatter)(const void* all, void* own, size_t own_count, int type, int reduction, Group, Stream);
  Status (*broadcast)(const void* from, void* to, size_t count, int type, int root, Group, Stream);
  Status (*send)(const void* from, size_t count, int type, int to, Group, Stream);
  Status (*receive)(void* to, size_t count, int type, int from, Group, Stream);
  const char* (*status_text)(Status);
};

// Of the library that is installed, loaded at the first call; shared memory's where kernels run on the processor
// (host_nccl.cpp). Throws Error (missing component) where there is none.
const NcclCalls& functions();

// Blocks of `count` elements, one for each rank, of which each goes to its rank.
struct Blocks {
  const void* from;
  void* to;
  size_t count;
  int type;
  int64_t element_bytes;
  int ranks;
};
Status all_to_all(const Blocks& blocks, Group group, Stream stream);

}  // namespace tprimat::engine::gpu::nccl
