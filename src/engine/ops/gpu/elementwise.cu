#include "ops/gpu/column_sums.h"
#include "ops/gpu/gpu_ops.h"
#include "ops/gpu/ranges.h"
#include "ops/gpu/warp.h"

namespace tprimat::engine::gpu {
namespace {

template <class T, int n>
__global__ void __launch_bounds__(k_block) add_arrays(int64_t count, const T* a, const T* b, T* y) {
  visit_array<n>(count, [&](auto width, int64_t i) {
    constexpr int size = decltype(width)::value;
    Chunk<T, size> sum = read_chunk<size>(a + i);
    const Chunk<T, size> other = read_chunk<size>(b + i);
    TPRIMAT_UNROLL
    for (int j = 0; j < size; ++j) sum.values[j] = store<T>(load(sum.values[j]) + load(other.values[j]));
    write_chunk<size>(y + i, sum);
  });
}

template <class T, int n>
__global__ void __launch_bounds__(k_block) convert_array(int64_t count, const float* from, T* to) {
  visit_array<n>(count, [&](auto width, int64_t i) {
    constexpr int size = decltype(width)::value;
    const Chunk<float, size> values = read_chunk<size>(from + i);
    Chunk<T, size> converted;
    TPRIMAT_UNROLL
    for (int j = 0; j < size; ++j) converted.values[j] = store<T>(values.values[j]);
    write_chunk<size>(to + i, converted);
  });
}

template <class T, int n>
__global__ void __launch_bounds__(k_block) add_bias_to_rows(int64_t rows, int64_t cols, const T* bias, T* x) {
  visit_matrix(rows, cols / n, [&](int64_t row, int64_t chunk) {
    const Chunk<T, n> added = read_chunk<n>(bias + chunk * n);
    T* at = x + row * cols + chunk * n;
    Chunk<T, n> sum = read_chunk<n>(at);
    TPRIMAT_UNROLL
    for (int j = 0; j < n; ++j) sum.values[j] = store<T>(load(sum.values[j]) + load(added.values[j]));
    write_chunk<n>(at, sum);
  });
}

// One column for each thread of a row of threads; the rows of threads share the parts out.
__global__ void __launch_bounds__(1024)
    add_parts(int64_t parts, int64_t cols, const float* partial, int64_t stride, float* totals) {
  __shared__ float shared[32][k_sum_lanes];
  const int64_t c = int64_t{blockIdx.x} * k_sum_lanes + threadIdx.x;
  float sum = 0.0f;
  if (c < cols)
    for (int64_t p = threadIdx.y; p < parts; p += blockDim.y) sum += partial[p * stride + c];
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= cols) return;
  for (unsigned y = 1; y < blockDim.y; ++y) sum += shared[y][threadIdx.x];
  totals[c] += sum;
}

template <class T, int n>
struct ColumnsOf {
  const T* x;
  int64_t cols;
  __device__ Chunk<float, n> operator()(int64_t r, int64_t c) const { return read_floats<n>(x + r * cols + c); }
};

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

template <class T>
void add(int64_t count, const T* a, const T* b, T* y) {
  if (count == 0) return;
  with_width<T>(fits_packs<T>({a, b, y}, {}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    launch(array_launch(count, n), add_arrays<T, n>, count, a, b, y);
  });
}

template <class T>
void add_bias(int64_t rows, int64_t cols, const T* bias, T* x) {
  if (rows == 0 || cols == 0) return;
  with_width<T>(fits_packs<T>({bias, x}, {cols}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    launch(matrix_launch(rows, cols / n), add_bias_to_rows<T, n>, rows, cols, bias, x);
  });
}

template <class T>
void convert(int64_t count, const float* from, T* to) {
  if (count == 0) return;
  with_width<T>(fits_packs<T>({from, to}, {}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    launch(array_launch(count, n), convert_array<T, n>, count, from, to);
  });
}

template <class T>
void add_column_sums(int64_t rows, int64_t cols, const T* x, float* sums) {
  with_width<T>(fits_packs<T>({x}, {cols}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    add_sums_of_rows<n>(rows, cols, ColumnsOf<T, n>{x, cols}, sums);
  });
}

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

}  // namespace

void add_partial_sums(int64_t parts, int64_t cols, const float* partial, int64_t stride, float* totals) {
  const unsigned high = parts >= 64 ? 32 : 4;
  launch({dim3(static_cast<unsigned>(parts_of(cols, k_sum_lanes))), dim3(k_sum_lanes, high), 0, context().stream},
         add_parts, parts, cols, partial, stride, totals);
}

void set_ops(OpsByFormat<ElementwiseOps>& ops) {
  ops.set_fast([]<class T>(ElementwiseOps<T>& fast) {
    fast = {add<T>, add<float>, add_bias<T>, add_column_sums<T>, convert<T>, sum_of_squares};
  });
}

}  // namespace tprimat::engine::gpu
