#pragma once

#include <map>
#include <memory>
#include <source_location>
#include <typeindex>

#include "base/check.h"
#include "device/gpu/runtime.h"

namespace tprimat::engine::gpu {

// Watches over work on the device that waits for other processes: for groups of ranks (comm/gpu).
class PeerWatch {
 public:
  virtual ~PeerWatch() = default;
  virtual void look() = 0;     // throws Error where a process that is waited for is lost
  virtual void abandon() = 0;  // ends such work unfinished; its groups are good for nothing afterwards
};

// What operations on this process's GPU work with: one device for each rank, one stream for its computing.
struct Context {
  Stream stream = nullptr;
  int multiprocessors = 1;
  // Device memory for what one operation hands on between its own kernels; the next one may overwrite it.
  std::byte* scratch = nullptr;
  size_t scratch_bytes = 0;
  int index = 0;               // of the GPU among those that this process sees
  PeerWatch* peers = nullptr;  // while there is such work
  bool given_up = false;       // work that never ends may be on the device: nothing waits for it any more
  std::map<std::type_index, std::shared_ptr<void>> belongings;  // see of_device()
};
Context& context();
bool has_context();  // between a device's making and its end

// One T per device, created on first use and destroyed with the device, before its stream: library handles and plans.
template <class T>
T& of_device() {
  std::shared_ptr<void>& belonging = context().belongings[typeid(T)];
  if (belonging == nullptr) belonging = std::make_shared<T>();
  return *static_cast<T*>(belonging.get());
}

// Bytes of GPU memory that a library may still allocate: free memory less a reserve for recorded work and lazily loaded
// kernels.
size_t bytes_for_libraries();

// Returns once the work is done. Throws Error where it failed, or waits for a process that is lost.
void wait_for(Stream stream, std::source_location where = std::source_location::current());
void wait_for(Event event, std::source_location where = std::source_location::current());

// The scratch memory as `count` values.
template <class T>
T* scratch(int64_t count) {
  CHECK(static_cast<size_t>(count) <= context().scratch_bytes / sizeof(T));
  return reinterpret_cast<T*>(context().scratch);
}

}  // namespace tprimat::engine::gpu
