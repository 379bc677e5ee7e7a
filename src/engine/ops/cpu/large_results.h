#pragma once

#include <cstdint>

#include "device/parallel.h"

// Results that go to memory past the caches: an ordinary store first reads a line that no cache holds
// (docs/performance.md, measured on Intel Xeons with AMX).
namespace tprimat::engine {

// Of what is kept for the backward pass, layer after layer in other memory.
inline bool is_large(int64_t bytes) {
  constexpr int64_t k_large = 512 * 1024;
  return bytes > k_large;
}

// Of gradients that every layer has in the same memory: it may be as large as the second-level caches of all threads.
inline bool exceeds_caches(int64_t bytes) {
  constexpr int64_t k_cache = 2 << 20;
  return bytes > k_cache * thread_count();
}

}  // namespace tprimat::engine
