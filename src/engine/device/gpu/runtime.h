#pragma once

// The one header in which CUDA and HIP have names of their own: what the two call alike, under one name. Three
// compilers read sources that include it: nvcc, hipcc, and the host's own compiler with TPRIMAT_GPU_HOST, which runs
// kernels on the processor, thread by thread (host_shim.h), so that their logic is tested where there is no GPU.
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <tuple>

#if defined(TPRIMAT_GPU_HOST)
#include "emulator/host_shim.h"
#elif defined(TPRIMAT_GPU_HIP) || defined(__HIP__) || defined(__HIPCC__)
#include <hip/hip_runtime.h>
#undef TPRIMAT_GPU_HIP
#define TPRIMAT_GPU_HIP 1
#else
#include <cuda_runtime.h>
#define TPRIMAT_GPU_CUDA 1
#endif

namespace tprimat::engine::gpu {

#if defined(TPRIMAT_GPU_HIP)
#define TPRIMAT_GPU_NAME(cuda, hip) hip
#else
#define TPRIMAT_GPU_NAME(cuda, hip) cuda  // the shim too
#endif

// TPRIMAT_GPU_API(Malloc) is cudaMalloc or hipMalloc.
#if defined(TPRIMAT_GPU_HIP)
#define TPRIMAT_GPU_API(name) hip##name
#else
#define TPRIMAT_GPU_API(name) cuda##name
#endif

using Status = TPRIMAT_GPU_API(Error_t);
using Stream = TPRIMAT_GPU_API(Stream_t);
using Event = TPRIMAT_GPU_API(Event_t);
using Graph = TPRIMAT_GPU_API(Graph_t);
using GraphProgram = TPRIMAT_GPU_API(GraphExec_t);
using DeviceProperties = TPRIMAT_GPU_NAME(cudaDeviceProp, hipDeviceProp_t);

inline constexpr Status k_success = TPRIMAT_GPU_API(Success);
inline constexpr Status k_out_of_memory = TPRIMAT_GPU_NAME(cudaErrorMemoryAllocation, hipErrorOutOfMemory);
inline constexpr Status k_no_device = TPRIMAT_GPU_API(ErrorNoDevice);
inline constexpr Status k_old_driver = TPRIMAT_GPU_API(ErrorInsufficientDriver);
inline constexpr Status k_not_ready = TPRIMAT_GPU_API(ErrorNotReady);
inline const char* status_text(Status status) { return TPRIMAT_GPU_API(GetErrorString)(status); }

// The calls of the runtime that this program makes; see the vendors' documents of the same words. Every call on a
// stream returns before its work is done.
namespace driver {

inline void ignore(Status) {}  // what can only fail where something failed before

inline Status last_error() { return TPRIMAT_GPU_API(GetLastError)(); }
inline Status count_devices(int* count) { return TPRIMAT_GPU_API(GetDeviceCount)(count); }
// 1000 × major + 10 × minor: what this program was built with, and what the driver supports; 0 without a driver.
inline Status runtime_version(int* version) { return TPRIMAT_GPU_API(RuntimeGetVersion)(version); }
inline Status driver_version(int* version) { return TPRIMAT_GPU_API(DriverGetVersion)(version); }
inline Status use_device(int index) { return TPRIMAT_GPU_API(SetDevice)(index); }
inline Status properties(DeviceProperties* properties, int index) {
  return TPRIMAT_GPU_API(GetDeviceProperties)(properties, index);
}
// Its place on the machine's bus, the same for every process.
inline Status bus_address(char* text, int bytes, int index) {
  return TPRIMAT_GPU_API(DeviceGetPCIBusId)(text, bytes, index);
}
inline Status memory(size_t* free, size_t* total) { return TPRIMAT_GPU_API(MemGetInfo)(free, total); }

inline Status allocate(void** memory, size_t bytes) { return TPRIMAT_GPU_API(Malloc)(memory, bytes); }
inline Status release(void* memory) { return TPRIMAT_GPU_API(Free)(memory); }
inline Status allocate_pinned(void** memory, size_t bytes) {
  return TPRIMAT_GPU_NAME(cudaMallocHost(memory, bytes), hipHostMalloc(memory, bytes, 0));
}
// Whether the memory is the device's own.
inline bool is_on_device(const void* memory) {
#if defined(TPRIMAT_GPU_HIP)  // ROCm 6 renamed a field of what hipPointerGetAttributes gives
  hipMemoryType type = hipMemoryTypeHost;
  const Status found = hipPointerGetAttribute(&type, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, const_cast<void*>(memory));
  if (found == k_success) return type == hipMemoryTypeDevice;
#else
  cudaPointerAttributes attributes;
  if (cudaPointerGetAttributes(&attributes, memory) == k_success) return attributes.type == cudaMemoryTypeDevice;
#endif
  ignore(last_error());  // HIP fails for memory that was taken without it
  return false;
}
inline Status release_pinned(void* memory) { return TPRIMAT_GPU_NAME(cudaFreeHost, hipHostFree)(memory); }

inline Status fill(void* to, int byte, size_t bytes, Stream stream) {
  return TPRIMAT_GPU_API(MemsetAsync)(to, byte, bytes, stream);
}
inline Status copy_to_device(void* to, const void* from, size_t bytes, Stream stream) {
  return TPRIMAT_GPU_API(MemcpyAsync)(to, from, bytes, TPRIMAT_GPU_API(MemcpyHostToDevice), stream);
}
inline Status copy_to_host(void* to, const void* from, size_t bytes, Stream stream) {
  return TPRIMAT_GPU_API(MemcpyAsync)(to, from, bytes, TPRIMAT_GPU_API(MemcpyDeviceToHost), stream);
}

inline Status make_stream(Stream* stream) {
  return TPRIMAT_GPU_API(StreamCreateWithFlags)(stream, TPRIMAT_GPU_API(StreamNonBlocking));
}
inline Status destroy_stream(Stream stream) { return TPRIMAT_GPU_API(StreamDestroy)(stream); }
inline Status finish_stream(Stream stream) { return TPRIMAT_GPU_API(StreamSynchronize)(stream); }
// k_not_ready while there is work to do.
inline Status ask_stream(Stream stream) { return TPRIMAT_GPU_API(StreamQuery)(stream); }
inline Status await_event(Stream stream, Event event) { return TPRIMAT_GPU_API(StreamWaitEvent)(stream, event, 0); }

inline Status make_event(Event* event) { return TPRIMAT_GPU_API(EventCreate)(event); }
// Of the order of work alone: it has no time, and costs less.
inline Status make_order_event(Event* event) {
  return TPRIMAT_GPU_API(EventCreateWithFlags)(event, TPRIMAT_GPU_API(EventDisableTiming));
}
inline Status destroy_event(Event event) { return TPRIMAT_GPU_API(EventDestroy)(event); }
inline Status record_event(Event event, Stream stream) { return TPRIMAT_GPU_API(EventRecord)(event, stream); }
// As a part of the graph that is recorded, done at each of its launches. HIP's events have no time there (seen with
// ROCm 7.1: ROCm/rocm-systems #2380), and HIP before 7 lacks this call.
#if defined(TPRIMAT_GPU_HIP)
inline constexpr bool k_graphs_time_events = false;
inline Status record_event_in_graph(Event event, Stream stream) { return record_event(event, stream); }
#else
inline constexpr bool k_graphs_time_events = true;
inline Status record_event_in_graph(Event event, Stream stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal);
}
#endif
inline Status finish_event(Event event) { return TPRIMAT_GPU_API(EventSynchronize)(event); }
inline Status ask_event(Event event) { return TPRIMAT_GPU_API(EventQuery)(event); }
inline Status elapsed_milliseconds(float* milliseconds, Event first, Event last) {
  return TPRIMAT_GPU_API(EventElapsedTime)(milliseconds, first, last);
}

inline Status begin_capture(Stream stream) {
  return TPRIMAT_GPU_API(StreamBeginCapture)(stream, TPRIMAT_GPU_API(StreamCaptureModeThreadLocal));
}
// Whether work given to the stream is only noted down for a graph.
inline bool is_recording(Stream stream) {
  TPRIMAT_GPU_API(StreamCaptureStatus) status = TPRIMAT_GPU_API(StreamCaptureStatusNone);
  return TPRIMAT_GPU_API(StreamIsCapturing)(stream, &status) == k_success &&
         status != TPRIMAT_GPU_API(StreamCaptureStatusNone);
}
inline Status end_capture(Stream stream, Graph* graph) { return TPRIMAT_GPU_API(StreamEndCapture)(stream, graph); }
inline Status make_program(GraphProgram* program, Graph graph) {
  return TPRIMAT_GPU_API(GraphInstantiateWithFlags)(program, graph, 0);
}
inline Status launch_program(GraphProgram program, Stream stream) {
  return TPRIMAT_GPU_API(GraphLaunch)(program, stream);
}
inline Status destroy_graph(Graph graph) { return TPRIMAT_GPU_API(GraphDestroy)(graph); }
inline Status destroy_program(GraphProgram program) { return TPRIMAT_GPU_API(GraphExecDestroy)(program); }

}  // namespace driver

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
  std::tuple<Parameters...> taken(static_cast<Parameters>(arguments)...);
#if defined(TPRIMAT_GPU_HOST)
  host::submit([=] { host::run_grid({how.grid, how.block, how.shared_bytes}, [&] { std::apply(kernel, taken); }); });
#else
  const auto* const function = reinterpret_cast<const void*>(kernel);
#if defined(TPRIMAT_GPU_CUDA)
  if (how.shared_bytes > (size_t{48} << 10))  // more than that is asked for
    check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(how.shared_bytes)));
#endif
  std::apply(
      [&](auto&... values) {
        void* pointers[] = {&values..., nullptr};
        check(TPRIMAT_GPU_API(LaunchKernel)(function, how.grid, how.block, pointers, how.shared_bytes, how.stream));
      },
      taken);
#endif
}

}  // namespace tprimat::engine::gpu

#if defined(TPRIMAT_GPU_HOST)
#define TPRIMAT_UNROLL
#else
#define TPRIMAT_UNROLL _Pragma("unroll")
#endif

// Shared memory whose size the launch states, as a pointer to T, aligned to 128 bytes.
#if defined(TPRIMAT_GPU_HOST)
#define TPRIMAT_DYNAMIC_SHARED(T, name) \
  T* const name = reinterpret_cast<T*>(::tprimat::engine::gpu::host::dynamic_shared())
#else
#define TPRIMAT_DYNAMIC_SHARED(T, name)                            \
  extern __shared__ __align__(128) unsigned char dynamic_shared[]; \
  T* const name = reinterpret_cast<T*>(dynamic_shared)
#endif
