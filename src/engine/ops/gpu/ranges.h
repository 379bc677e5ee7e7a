#pragma once

// Many runs of values in one kernel: a table of them in scratch memory, their chunks shared out to blocks.
#include <algorithm>
#include <span>
#include <vector>

#include "ops/gpu/chunk.h"

namespace tprimat::engine::gpu {

inline constexpr int64_t k_range_chunk = 8192;  // values that a block takes at a time

template <class Range>
struct PlacedRange {
  Range range;          // a struct with a `count`
  int64_t first_chunk;  // among those of all ranges
  bool packed;          // whether four values may be read at once
};

template <class Range>
struct RangeTable {
  const PlacedRange<Range>* ranges = nullptr;
  int64_t count = 0, chunks = 0;

  __device__ const PlacedRange<Range>& of_chunk(int64_t chunk) const {
    int64_t first = 0, end = count;
    while (end - first > 1) {
      const int64_t middle = first + (end - first) / 2;
      (ranges[middle].first_chunk <= chunk ? first : end) = middle;
    }
    return ranges[first];
  }
};

// What fits among a kernel's parameters. The table goes to the device in them: unlike a copy, they need no memory of
// the host's that stays.
template <class Range>
struct SomeRanges {
  static constexpr int k_max = 3840 / sizeof(PlacedRange<Range>);
  PlacedRange<Range> ranges[k_max];
  int count = 0;
};
template <class Range>
__global__ void __launch_bounds__(k_block) store_ranges(SomeRanges<Range> some, PlacedRange<Range>* table) {
  for (int i = static_cast<int>(threadIdx.x); i < some.count; i += k_block) table[i] = some.ranges[i];
}

// The table, behind the first `offset` bytes of scratch memory. packed(range): whether its values may be read in
// chunks of four.
template <class Range, class Packed>
RangeTable<Range> place_ranges(std::span<const Range> ranges, size_t offset, const Packed& packed) {
  RangeTable<Range> table;
  std::vector<PlacedRange<Range>> placed;
  for (const Range& range : ranges) {
    if (range.count == 0) continue;
    placed.push_back({range, table.chunks, packed(range)});
    table.chunks += parts_of(range.count, k_range_chunk);
  }
  table.count = static_cast<int64_t>(placed.size());
  const size_t bytes = placed.size() * sizeof(PlacedRange<Range>);
  auto* memory =
      reinterpret_cast<PlacedRange<Range>*>(scratch<std::byte>(static_cast<int64_t>(offset + bytes)) + offset);
  for (size_t first = 0; first < placed.size(); first += SomeRanges<Range>::k_max) {
    SomeRanges<Range> some;
    some.count = static_cast<int>(std::min<size_t>(SomeRanges<Range>::k_max, placed.size() - first));
    std::copy_n(placed.begin() + static_cast<std::ptrdiff_t>(first), some.count, some.ranges);
    launch({dim3(1), dim3(k_block), 0, context().stream}, store_ranges<Range>, some, memory + first);
  }
  table.ranges = memory;
  return table;
}

template <class Range>
KernelLaunch range_launch(const RangeTable<Range>& table) {
  return {dim3(static_cast<unsigned>(std::min(table.chunks, most_blocks()))), dim3(k_block), 0, context().stream};
}

// visit(Width<n>, i), n 4 or 1, for the values of one chunk of a range.
template <class Range, class Visit>
__device__ inline void visit_range_chunk(const PlacedRange<Range>& placed, int64_t chunk, const Visit& visit) {
  const int64_t begin = (chunk - placed.first_chunk) * k_range_chunk;
  const int64_t end = begin + k_range_chunk < placed.range.count ? begin + k_range_chunk : placed.range.count;
  const int64_t packed_end = placed.packed ? begin + (end - begin) / 4 * 4 : begin;
  for (int64_t i = begin + int64_t{threadIdx.x} * 4; i < packed_end; i += int64_t{k_block} * 4) visit(Width<4>{}, i);
  for (int64_t i = packed_end + threadIdx.x; i < end; i += k_block) visit(Width<1>{}, i);
}

}  // namespace tprimat::engine::gpu
