// The runtime's calls on the host: one device, whose streams do all work in the order in which it is given.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "emulator/host_memory.h"
#include "emulator/host_shim.h"

struct HostStream {};
struct HostEvent {
  std::chrono::steady_clock::time_point time;
  bool in_graph = false;  // recorded while a graph was, and not as a part of it that tells the time
};
struct HostGraph {
  std::vector<std::function<void()>> work;
};
struct HostGraphProgram {
  std::vector<std::function<void()>> work;
};

namespace tprimat::engine::gpu::host {
namespace {

constexpr size_t k_memory_bytes = size_t{16} << 30;

constexpr int k_runtime_version = 13000;
struct Machine {
  int devices = 1, current = 0, driver_version = k_runtime_version;
};
Machine& machine() {
  static Machine instance;
  return instance;
}

struct Queue {
  bool put_off = false, broken = false, refuses_events = false;
  std::atomic<bool> hangs = false;  // another thread may end it
  std::vector<std::function<void()>> waiting;
  std::unique_ptr<HostGraph> recorded;
};
Queue& queue() {
  static Queue instance;
  return instance;
}

class OpenMemory {
 public:
  OpenMemory() { open_memory(); }
  ~OpenMemory() { close_memory(); }
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
};

void do_waiting() {
  std::vector<std::function<void()>>& waiting = queue().waiting;
  if (waiting.empty() || queue().hangs) return;
  const OpenMemory open;
  size_t done = 0;
  while (done < waiting.size() && !queue().hangs) {
    const std::function<void()> work = std::move(waiting[done++]);
    try {
      work();
    } catch (...) {
      waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(done));
      throw;
    }
  }
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(done));
}

// As a real runtime, nobody can wait for work that is only noted down.
cudaError_t ask() {
  if (queue().broken) return cudaErrorLaunchFailure;
  if (queue().recorded) return cudaErrorStreamCaptureUnsupported;
  do_waiting();
  return queue().hangs ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t wait() {
  const cudaError_t status = ask();
  if (status != cudaErrorNotReady) return status;
  std::fputs("the host waits for work of the device that never ends\n", stderr);
  std::abort();
}

}  // namespace

void submit(std::function<void()> work) {
  if (queue().recorded) {
    queue().recorded->work.push_back(std::move(work));
  } else {
    queue().waiting.push_back(std::move(work));
    if (!queue().put_off) do_waiting();
  }
}

void put_work_off(bool put_off) {
  do_waiting();
  queue().put_off = put_off;
}

void hang() { queue().hangs = true; }
void go_on() { queue().hangs = false; }
void show_devices(int count) { machine().devices = count; }
int current_device() { return machine().current; }
void install_driver(int version) { machine().driver_version = version; }
void refuse_events(bool refuse) { queue().refuses_events = refuse; }
void break_device(bool broken) { queue().broken = broken; }

}  // namespace tprimat::engine::gpu::host

namespace host = tprimat::engine::gpu::host;

const char* cudaGetErrorString(cudaError_t status) {
  switch (status) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
    default: return "another error";
  }
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) {
  if (host::machine().driver_version < host::k_runtime_version) return cudaErrorInsufficientDriver;
  *count = host::machine().devices;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = host::k_runtime_version;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = host::machine().driver_version;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int index) {
  if (index < 0 || index >= host::machine().devices) return cudaErrorInvalidDevice;
  host::machine().current = index;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index) {
  if (index < 0 || index >= host::machine().devices) return cudaErrorInvalidDevice;
  *properties = {"kernels on the processor", 4, 0, 0};
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* address, int bytes, int index) {  // every process has one of its own
  if (index < 0 || index >= host::machine().devices) return cudaErrorInvalidDevice;
  std::snprintf(address, static_cast<size_t>(bytes), "simulated by process %d, number %d", static_cast<int>(::getpid()),
                index);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = host::k_memory_bytes;
  *free = *total - std::min(*total, host::taken_bytes());
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return host::wait(); }

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (bytes > host::k_memory_bytes - std::min(host::k_memory_bytes, host::taken_bytes()))
    return cudaErrorMemoryAllocation;
  *memory = bytes == 0 ? nullptr : host::take_memory(bytes);
  return *memory != nullptr || bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void* memory) {
  const cudaError_t waited = host::wait();
  if (waited != cudaSuccess || memory == nullptr) return waited;
  return host::give_memory_back(memory) ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  *memory = std::malloc(bytes);
  return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t) {
  host::submit([=] { std::memset(to, byte, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  if (host::queue().broken) return cudaErrorLaunchFailure;
  host::submit([=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t row_bytes,
                              size_t rows, cudaMemcpyKind, cudaStream_t) {
  if (row_bytes > to_pitch || row_bytes > from_pitch) return cudaErrorInvalidValue;
  host::submit([=] {
    for (size_t row = 0; row < rows; ++row)
      std::memcpy(static_cast<std::byte*>(to) + row * to_pitch, static_cast<const std::byte*>(from) + row * from_pitch,
                  row_bytes);
  });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new HostStream;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t) { return host::ask(); }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return host::wait(); }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new HostEvent;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  if (host::queue().refuses_events) return cudaErrorLaunchFailure;
  event->in_graph = host::queue().recorded != nullptr;
  if (!event->in_graph) host::submit([=] { event->time = std::chrono::steady_clock::now(); });
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t, unsigned flags) {
  if (flags != cudaEventRecordExternal || !host::queue().recorded) return cudaErrorInvalidValue;
  event->in_graph = false;
  host::submit([=] { event->time = std::chrono::steady_clock::now(); });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t) { return host::ask(); }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return host::wait(); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t last) {
  if (first->in_graph || last->in_graph) return cudaErrorCapturedEvent;
  *milliseconds = std::chrono::duration<float, std::milli>(last->time - first->time).count();
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = host::queue().recorded ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  attributes->type = host::is_taken(memory) ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  if (host::queue().recorded) return cudaErrorStreamCaptureUnsupported;
  host::queue().recorded = std::make_unique<HostGraph>();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  *graph = host::queue().recorded.release();
  return *graph != nullptr ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* program, cudaGraph_t graph, unsigned long long) {
  *program = new HostGraphProgram{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t program, cudaStream_t) {
  for (const std::function<void()>& work : program->work) host::submit(work);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t program) {
  delete program;
  return cudaSuccess;
}
