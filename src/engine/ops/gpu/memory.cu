#include "ops/gpu/chunk.h"
#include "ops/gpu/gpu_ops.h"
#include "ops/gpu/ranges.h"
#include "ops/gpu/warp.h"

namespace tprimat::engine::gpu {
namespace {

// Rows of `units` pieces of memory, Unit each.
template <class Unit>
__global__ void __launch_bounds__(k_block) copy_units(RowCopy copy, int64_t units) {
  const auto* from = static_cast<const std::byte*>(copy.from);
  auto* to = static_cast<std::byte*>(copy.to);
  visit_matrix(copy.rows, units, [&](int64_t row, int64_t unit) {
    const auto* source = reinterpret_cast<const Unit*>(from + static_cast<size_t>(row) * copy.from_stride);
    reinterpret_cast<Unit*>(to + static_cast<size_t>(row) * copy.to_stride)[unit] = source[unit];
  });
}

template <class Unit>
void start_copy(const RowCopy& copy) {
  const auto units = static_cast<int64_t>(copy.row_bytes / sizeof(Unit));
  launch(matrix_launch(copy.rows, units), copy_units<Unit>, copy, units);
}

__global__ void __launch_bounds__(k_block)
    mark_own_rows(int64_t count, const int32_t* rows, int64_t first, int64_t owned, int32_t* own) {
  visit_array<1>(count, [&](auto, int64_t i) {
    const int64_t row = rows[i] - first;
    own[i] = row >= 0 && row < owned ? static_cast<int32_t>(row) : -1;
  });
}

using Cleared = ClearRange<float>;

__global__ void __launch_bounds__(k_block) clear_table(RangeTable<Cleared> table) {
  for (int64_t chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x) {
    const PlacedRange<Cleared>& placed = table.of_chunk(chunk);
    float* const values = placed.range.values;
    visit_range_chunk(placed, chunk, [&](auto width, int64_t i) {
      constexpr int n = decltype(width)::value;
      write_chunk<n>(values + i, Chunk<float, n>{});
    });
  }
}

__global__ void __launch_bounds__(1024) add_values(int64_t count, const float* values, double* total) {
  double sum = 0.0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += static_cast<double>(values[i]);
  sum = block_sum(sum);
  if (threadIdx.x == 0) *total += sum;
}

void clear(void* memory, size_t bytes) {
  if (bytes > 0) check(driver::fill(memory, 0, bytes, context().stream));
}

void clear_ranges(std::span<const ClearRange<float>> ranges) {
  const auto table = place_ranges(ranges, 0, [](const Cleared& range) { return fits_chunks(range.values, 4); });
  if (table.chunks > 0) launch(range_launch(table), clear_table, table);
}

void copy(const RowCopy& rows) {
  if (rows.rows == 0 || rows.row_bytes == 0) return;
  RowCopy copy = rows;
  if (copy.rows > 1 && copy.from_stride == copy.row_bytes && copy.to_stride == copy.row_bytes)
    copy = {copy.from, copy.to, 1, static_cast<size_t>(copy.rows) * copy.row_bytes, 0, 0};
  if (copy.rows == 1) copy.from_stride = copy.to_stride = 0;
  const size_t all = reinterpret_cast<uintptr_t>(copy.from) | reinterpret_cast<uintptr_t>(copy.to) | copy.row_bytes |
                     copy.from_stride | copy.to_stride;
  if (all % 16 == 0) return start_copy<Chunk<uint32_t, 4>>(copy);
  if (all % 4 == 0) return start_copy<uint32_t>(copy);
  if (all % 2 == 0) return start_copy<uint16_t>(copy);
  start_copy<uint8_t>(copy);
}

void own_rows(int64_t count, const int32_t* rows, int64_t first, int64_t owned, int32_t* own) {
  if (count > 0) launch(array_launch(count, 1), mark_own_rows, count, rows, first, owned, own);
}

void add_total(int64_t count, const float* values, double* total) {
  if (count == 0) return;
  const unsigned threads = count > 4096 ? 1024 : k_block;
  launch({dim3(1), dim3(threads), 0, context().stream}, add_values, count, values, total);
}

}  // namespace

void set_ops(OpsByFormat<MemoryOps>& ops) {
  ops.set_fast([]<class T>(MemoryOps<T>& fast) { fast = {clear, clear_ranges, copy, own_rows, add_total}; });
}

}  // namespace tprimat::engine::gpu
