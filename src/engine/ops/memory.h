#pragma once

#include <cstddef>
#include <cstdint>

namespace tprimat::engine {

// Rows of bytes from one place to another; the two do not overlap.
struct RowCopy {
  const void* from = nullptr;
  void* to = nullptr;
  int64_t rows = 1;
  size_t row_bytes = 0;
  size_t from_stride = 0, to_stride = 0;  // bytes from one row to the next
};
void copy_rows(const RowCopy& copy);

void clear_bytes(void* memory, size_t bytes);

// Values that become zero together with others.
template <class A>
struct ClearRange {
  A* values;
  int64_t count;
};

// own[i] = rows[i] − first where that is one of the `owned` rows here, −1 where it is another rank's.
void find_own_rows(int64_t count, const int32_t* rows, int64_t first, int64_t owned, int32_t* own);

// *total += Σ values, added up in double, in order. A: float or double.
template <class A>
void add_total(int64_t count, const A* values, double* total);

// Values whose squares count.
template <class A>
struct SquaresRange {
  const A* values;
  int64_t count;
};

}  // namespace tprimat::engine
