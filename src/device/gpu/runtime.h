#pragma once

// The one header in which CUDA and HIP have names of their own: what the two call alike, under one name. Three
// compilers read sources that include it: nvcc, hipcc, and the host's own compiler with TPRIMAT_GPU_HOST, which runs
// kernels on the processor, thread by thread (host_shim.h), so that their logic is tested where there is no GPU.
#include <cstddef>
#include <cstdint>
#include <source_location>

#if defined(TPRIMAT_GPU_HOST)
#include "device/gpu/host_shim.h"
#elif defined(__HIP__) || defined(__HIPCC__)
#include <hip/hip_runtime.h>
#define TPRIMAT_GPU_HIP 1
#else
#include <cuda_runtime.h>
#define TPRIMAT_GPU_CUDA 1
#endif

namespace tprimat::gpu {

#if defined(TPRIMAT_GPU_HIP)
#define TPRIMAT_GPU_NAME(cuda, hip) hip
#else
#define TPRIMAT_GPU_NAME(cuda, hip) cuda  // the shim too
#endif

using Status = TPRIMAT_GPU_NAME(cudaError_t, hipError_t);
using Stream = TPRIMAT_GPU_NAME(cudaStream_t, hipStream_t);
using Event = TPRIMAT_GPU_NAME(cudaEvent_t, hipEvent_t);
using Graph = TPRIMAT_GPU_NAME(cudaGraph_t, hipGraph_t);
using GraphProgram = TPRIMAT_GPU_NAME(cudaGraphExec_t, hipGraphExec_t);

inline constexpr Status k_success = TPRIMAT_GPU_NAME(cudaSuccess, hipSuccess);
inline const char* status_text(Status status) {
  return TPRIMAT_GPU_NAME(cudaGetErrorString, hipGetErrorString)(status);
}

// Throws Error that names the place in the source and what the driver says; does nothing on success.
void check(Status status, std::source_location where = std::source_location::current());

struct KernelLaunch {
  dim3 grid = dim3(1, 1, 1), block = dim3(1, 1, 1);  // blocks; threads of each
  size_t shared_bytes = 0;
  Stream stream = nullptr;
};

// Starts a kernel: launch({grid, block, bytes, stream}, kernel<T>, arguments...). Arguments are converted to the
// kernel's parameters.
template <class... Parameters, class... Arguments>
void launch(const KernelLaunch& how, void (*kernel)(Parameters...), const Arguments&... arguments) {
#if defined(TPRIMAT_GPU_HOST)
  host::run_grid({how.grid, how.block, how.shared_bytes}, [&] { kernel(static_cast<Parameters>(arguments)...); });
#else
  kernel<<<how.grid, how.block, how.shared_bytes, how.stream> > >(static_cast<Parameters>(arguments)...);
  check(TPRIMAT_GPU_NAME(cudaGetLastError, hipGetLastError)());
#endif
}

}  // namespace tprimat::gpu

#if defined(TPRIMAT_GPU_HOST)
#define TPRIMAT_UNROLL
#else
#define TPRIMAT_UNROLL _Pragma("unroll")
#endif

// Shared memory whose size the launch states, as a pointer to T, aligned to 128 bytes.
#if defined(TPRIMAT_GPU_HOST)
#define TPRIMAT_DYNAMIC_SHARED(T, name) T* const name = reinterpret_cast<T*>(::tprimat::gpu::host::dynamic_shared())
#else
#define TPRIMAT_DYNAMIC_SHARED(T, name)                            \
  extern __shared__ __align__(128) unsigned char dynamic_shared[]; \
  T* const name = reinterpret_cast<T*>(dynamic_shared)
#endif
