#pragma once

#include <algorithm>
#include <cstdint>

#include "device/parallel.h"
#include "ops/cpu/bf16_lines.h"
#include "ops/cpu/growing_buffer.h"

namespace tprimat::engine {

inline GrowingBuffer<bf16>& shared_panels() {
  static GrowingBuffer<bf16> buffer;
  return buffer;
}
inline GrowingBuffer<bf16>& own_panels() {
  thread_local GrowingBuffer<bf16> buffer;
  return buffer;
}
// Sums of a block, over the parts of a share that were multiplied so far.
inline GrowingBuffer<float>& own_sums() {
  thread_local GrowingBuffer<float> buffer;
  return buffer;
}

// Part of a product: c = left·rightᵀ + addend over elements [begin, begin + length) of all lines; addend == nullptr:
// nothing to add. C is float or bf16.
template <class C>
struct Bf16Share {
  Bf16Lines left, right;
  int64_t begin, length;
  C* c;
  int64_t c_stride;
  const float* addend;
  int64_t addend_stride;
  double* squares = nullptr;  // where it is given, Σ c² (C float, by AMX)

  const Bf16Lines& lines(Side side) const { return side == Side::left ? left : right; }
};

// `size` elements of panels, packed by all threads together: pack(panels, share of the work).
template <class Pack>
const bf16* pack_whole(int64_t size, const Pack& pack) {
  bf16* const panels = shared_panels().at_least(size);
  const int64_t parts = k_pieces_per_thread * thread_count();
  parallel_each(parts, [&](int64_t part) { pack(panels, PackShare{part, parts}); });
  return panels;
}

}  // namespace tprimat::engine
