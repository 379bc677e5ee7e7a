#pragma once

#include "base/check.h"
#include "device/gpu/runtime.h"

namespace tprimat::gpu {

// What operations on this process's GPU work with: one device for each rank, one stream for its computing.
struct Context {
  Stream stream = nullptr;
  int multiprocessors = 1;
  // Device memory for what one operation hands on between its own kernels; the next one may overwrite it.
  std::byte* scratch = nullptr;
  size_t scratch_bytes = 0;
};
Context& context();

// The scratch memory as `count` values.
template <class T>
T* scratch(int64_t count) {
  CHECK(static_cast<size_t>(count) <= context().scratch_bytes / sizeof(T));
  return reinterpret_cast<T*>(context().scratch);
}

}  // namespace tprimat::gpu
