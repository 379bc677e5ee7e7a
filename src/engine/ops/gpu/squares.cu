#include "ops/gpu/gpu_ops.h"
#include "ops/gpu/ranges.h"
#include "ops/gpu/warp.h"

namespace tprimat::engine::gpu {
namespace {

using Squares = SquaresRange<float>;

__global__ void __launch_bounds__(k_block) add_squares(RangeTable<Squares> table, double* partial) {
  double sum = 0.0;
  for (int64_t chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x) {
    const PlacedRange<Squares>& placed = table.of_chunk(chunk);
    const float* const values = placed.range.values;
    visit_range_chunk(placed, chunk, [&](auto width, int64_t i) {
      constexpr int n = decltype(width)::value;
      const Chunk<float, n> some = read_chunk<n>(values + i);
      TPRIMAT_UNROLL
      for (int j = 0; j < n; ++j) sum += static_cast<double>(some.values[j]) * static_cast<double>(some.values[j]);
    });
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(k_block) add_partial_squares(int64_t parts, double* partial) {
  double sum = 0.0;
  for (int64_t i = threadIdx.x; i < parts; i += k_block) sum += partial[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[0] = sum;
}

}  // namespace

double sum_of_squares(std::span<const SquaresRange<float>> ranges) {
  const int64_t most_parts = 8 * int64_t{context().multiprocessors};
  const auto table = place_ranges(ranges, static_cast<size_t>(most_parts) * sizeof(double),
                                  [](const Squares& range) { return fits_chunks(range.values, 4); });
  if (table.chunks == 0) return 0.0;
  const int64_t parts = std::min(table.chunks, most_parts);
  double* partial = scratch<double>(parts);
  const KernelLaunch how{dim3(static_cast<unsigned>(parts)), dim3(k_block), 0, context().stream};
  launch(how, add_squares, table, partial);
  launch({dim3(1), dim3(k_block), 0, context().stream}, add_partial_squares, parts, partial);
  double sum = 0.0;
  check(driver::copy_to_host(&sum, partial, sizeof sum, context().stream));
  wait_for(context().stream);
  return sum;
}

}  // namespace tprimat::engine::gpu
