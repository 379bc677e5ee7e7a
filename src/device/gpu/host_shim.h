#pragma once

// Kernels on the processor: the words of CUDA's language as plain C++, one fiber per GPU thread. Blocks run one after
// the other; the threads of a block take turns and change places only where they wait for each other, so that a barrier
// that some threads miss is found (Error), and memory beyond an allocation is found by the address sanitizer. Slow, for
// tests.
#include <cstddef>
#include <cstdint>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_size = 1, unsigned y_size = 1, unsigned z_size = 1) : x(x_size), y(y_size), z(z_size) {}
};

// Of the runtime's interface what this program uses, with the host's memory in place of the device's.
enum cudaError_t { cudaSuccess = 0, cudaErrorMemoryAllocation = 2 };
using cudaStream_t = struct HostStream*;
using cudaEvent_t = struct HostEvent*;
using cudaGraph_t = struct HostGraph*;
using cudaGraphExec_t = struct HostGraphProgram*;
inline const char* cudaGetErrorString(cudaError_t status) {
  return status == cudaSuccess ? "success" : "out of memory";
}

namespace tprimat::gpu::host {

struct Grid {
  dim3 grid, block;
  size_t shared_bytes = 0;
};
// Runs the body once for each thread of the grid.
void run_grid(const Grid& grid, const std::function<void()>& body);

struct ThreadPlace {
  dim3 thread{0, 0, 0}, block{0, 0, 0}, block_size, grid_size;
};
const ThreadPlace& place();  // of the running thread

std::byte* dynamic_shared();
void sync_block();
void sync_warp();
// Each thread of a warp gives up to 16 bytes and takes those of lane `from` of its warp.
void exchange(const void* given, size_t bytes, int from, void* taken);
int lane();

#ifndef TPRIMAT_GPU_HOST_WARP
#define TPRIMAT_GPU_HOST_WARP 32
#endif

}  // namespace tprimat::gpu::host

#define threadIdx (::tprimat::gpu::host::place().thread)
#define blockIdx (::tprimat::gpu::host::place().block)
#define blockDim (::tprimat::gpu::host::place().block_size)
#define gridDim (::tprimat::gpu::host::place().grid_size)
inline void __syncthreads() { ::tprimat::gpu::host::sync_block(); }
