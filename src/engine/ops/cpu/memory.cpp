#include <algorithm>
#include <cstring>
#include <numeric>

#include "device/parallel.h"
#include "ops/op_table.h"

namespace tprimat::engine {
namespace {

void copy_rows(const RowCopy& copy) {
  const auto* const from = static_cast<const std::byte*>(copy.from);
  auto* const to = static_cast<std::byte*>(copy.to);
  for (int64_t row = 0; copy.row_bytes > 0 && row < copy.rows; ++row)
    std::memcpy(to + static_cast<size_t>(row) * copy.to_stride, from + static_cast<size_t>(row) * copy.from_stride,
                copy.row_bytes);
}

void clear_bytes(void* memory, size_t bytes) {
  auto* const first = static_cast<std::byte*>(memory);
  parallel_ranges(static_cast<int64_t>(bytes),
                  [&](int64_t begin, int64_t end) { std::fill(first + begin, first + end, std::byte{0}); });
}

template <class A>
void clear_ranges(std::span<const ClearRange<A>> ranges) {
  for (const ClearRange<A>& range : ranges) clear_bytes(range.values, static_cast<size_t>(range.count) * sizeof(A));
}

void find_own_rows(int64_t count, const int32_t* rows, int64_t first, int64_t owned, int32_t* own) {
  std::transform(rows, rows + count, own, [&](int32_t row) {
    const int64_t index = row - first;
    return index >= 0 && index < owned ? static_cast<int32_t>(index) : -1;
  });
}

template <class A>
void add_total(int64_t count, const A* values, double* total) {
  *total += std::accumulate(values, values + count, 0.0);
}

}  // namespace

void set_cpu_ops(OpsByFormat<MemoryOps>& ops) {
  const auto set = [](auto& group) { group = {clear_bytes, clear_ranges, copy_rows, find_own_rows, add_total}; };
  ops.set_fast(set);
  set(ops.f64);
}

}  // namespace tprimat::engine
