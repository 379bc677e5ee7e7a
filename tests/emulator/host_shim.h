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

// Of the runtime's interface what this program uses (runtime.h), with memory of the host in place of the device's. Only
// work on the device may touch that memory: a host that reads or writes it itself ends with a sentence about it.
enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNotReady = 600,
  cudaErrorLaunchFailure = 719,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorCapturedEvent = 907,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal };
constexpr unsigned cudaStreamNonBlocking = 1;
using cudaStream_t = struct HostStream*;
using cudaEvent_t = struct HostEvent*;
using cudaGraph_t = struct HostGraph*;
using cudaGraphExec_t = struct HostGraphProgram*;
struct cudaDeviceProp {
  char name[256];
  int multiProcessorCount;
  int major, minor;
};

const char* cudaGetErrorString(cudaError_t status);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaSetDevice(int index);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index);
cudaError_t cudaDeviceGetPCIBusId(char* address, int bytes, int index);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaMalloc(void** memory, size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaMallocHost(void** memory, size_t bytes);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t row_bytes,
                              size_t rows, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreate(cudaEvent_t* event);
constexpr unsigned cudaEventDisableTiming = 2;
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
constexpr unsigned cudaEventRecordExternal = 1;
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t last);
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice };
struct cudaPointerAttributes {
  cudaMemoryType type;
};
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* program, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t program, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t program);

namespace tprimat::engine::gpu::host {

struct Grid {
  dim3 grid, block;
  size_t shared_bytes = 0;
};
// Runs the body once for each thread of the grid.
void run_grid(const Grid& grid, const std::function<void()>& body);
int64_t grids_run();  // so far

// Gives work to the device: done at once, noted down while a graph is recorded, or, where the work is put off, done
// when somebody waits for it. Only inside of it may the device's memory be touched.
void submit(std::function<void()> work);

// With true, work waits until the host waits for it, which shows where the host changes or ends what a kernel still
// reads.
void put_work_off(bool put_off);

// Said by work that waits for another process which is lost: it, and all that was given after it, stays undone until
// go_on(), and a host that waits for it, as freeing memory does, ends with a sentence in place of waiting for ever.
void hang();
void go_on();

// How many GPUs there are; 1 unless said otherwise.
void show_devices(int count);
// The GPU that calls of the runtime are for.
int current_device();
// A driver that supports this version (1000 × major + 10 × minor) and is too old where the runtime's is later.
void install_driver(int version);

// With true, events cannot be recorded.
void refuse_events(bool refuse);
// With true, calls that wait, copy or free fail, as they do once a kernel has failed.
void break_device(bool broken);

struct ThreadPlace {
  dim3 thread{0, 0, 0}, block{0, 0, 0}, block_size, grid_size;
};
extern constinit thread_local const ThreadPlace* current_place;  // of the running thread

std::byte* dynamic_shared();
void sync_block();
void sync_warp();
// Each thread of a warp gives up to 16 bytes and takes those of lane `from` of its warp.
void exchange(const void* given, size_t bytes, int from, void* taken);
int lane();

#ifndef TPRIMAT_GPU_HOST_WARP
#define TPRIMAT_GPU_HOST_WARP 32
#endif

}  // namespace tprimat::engine::gpu::host

#define threadIdx (::tprimat::engine::gpu::host::current_place->thread)
#define blockIdx (::tprimat::engine::gpu::host::current_place->block)
#define blockDim (::tprimat::engine::gpu::host::current_place->block_size)
#define gridDim (::tprimat::engine::gpu::host::current_place->grid_size)
inline void __syncthreads() { ::tprimat::engine::gpu::host::sync_block(); }
