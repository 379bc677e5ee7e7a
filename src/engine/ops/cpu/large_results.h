#pragma once

#include <cstdint>

#include "device/parallel.h"

// Results that go to memory past the caches: an ordinary store first reads a line that no cache holds
// (docs/performance.md, measured on Intel Xeons with AMX).
namespace tprimat::engine {

// The usual limit: for what products, norms and attention's forward pass write.
inline bool is_large(int64_t bytes) {
  constexpr int64_t k_large = 512 * 1024;
  return bytes > k_large;
}

// Larger than the second-level caches of all threads together. For gradients that every layer has in the same memory,
// so that the next products find smaller ones there, and for the weights that AdamW rounds.
inline bool exceeds_caches(int64_t bytes) {
  constexpr int64_t k_cache = 2 << 20;
  return bytes > k_cache * thread_count();
}

}  // namespace tprimat::engine
