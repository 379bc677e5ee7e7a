#pragma once

// Copies from global to shared memory that go on while the thread does something else (cp.async, NVIDIA sm_80 and
// later); elsewhere they are done when the call returns.
#include "device/gpu/runtime.h"

namespace tprimat::engine::gpu {

// 16 bytes, both sides aligned; zeros where `exists` is false (`from` is then not read).
__device__ inline void copy_pack_async(void* to, const void* from, bool exists) {
#if defined(TPRIMAT_GPU_CUDA)
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
      "l"(from), "r"(exists ? 16 : 0)
      : "memory");
#else
  struct alignas(16) Words {
    uint32_t words[4];
  };
  *static_cast<Words*>(to) = exists ? *static_cast<const Words*>(from) : Words{};
#endif
}

// The same pointer or number, of which the compiler does not know how it came about: it then keeps nothing that follows
// from it in registers over all rounds of a loop.
template <class V>
__device__ inline V hidden(V value) {
#if defined(TPRIMAT_GPU_CUDA)
  if constexpr (sizeof(V) == 8)
    asm volatile("" : "+l"(value));
  else
    asm volatile("" : "+r"(value));
#endif
  return value;
}

// Waits until this thread's copies are done; a barrier then shows them to the others.
__device__ inline void wait_for_copies() {
#if defined(TPRIMAT_GPU_CUDA)
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace tprimat::engine::gpu
