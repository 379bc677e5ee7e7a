#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/element.h"

namespace tprimat::engine {

// Rows of bytes from one place to another; the two do not overlap.
struct RowCopy {
  const void* from = nullptr;
  void* to = nullptr;
  int64_t rows = 1;
  size_t row_bytes = 0;
  size_t from_stride = 0, to_stride = 0;  // bytes from one row to the next
};

// Values that become zero together with others.
template <class A>
struct ClearRange {
  A* values;
  int64_t count;
};

template <class T>
struct MemoryOps {
  void (*clear)(void* memory, size_t bytes);
  void (*clear_ranges)(std::span<const ClearRange<Accum<T>>> ranges);
  void (*copy)(const RowCopy& copy);
  // own[i] = rows[i] − first where that is one of the `owned` rows here, −1 where it is another rank's.
  void (*own_rows)(int64_t count, const int32_t* rows, int64_t first, int64_t owned, int32_t* own);
  // *total += Σ values, added up in double, in order.
  void (*add_total)(int64_t count, const Accum<T>* values, double* total);
};

}  // namespace tprimat::engine
