#include <bit>
#include <utility>

#include "ops/gpu/chunk.h"
#include "ops/gpu/gpu_ops.h"
#include "ops/gpu/warp.h"

namespace tprimat::engine::gpu {
namespace {

template <class T, int n>
__global__ void __launch_bounds__(k_block)
    gather_rows(EmbeddingShape shape, const int32_t* tokens, const T* table, T* y) {
  visit_matrix(shape.rows, shape.cols / n, [&](int64_t row, int64_t chunk) {
    const int64_t token = tokens[row];
    Chunk<T, n> values{};
    if (token >= 0) values = read_chunk<n>(table + token * shape.cols + chunk * n);
    write_chunk<n>(y + row * shape.cols + chunk * n, values);
  });
}

// The backward pass adds up the rows of each token in their order. For that the rows are sorted by token, equal ones in
// their order: a radix sort, eight bits at a time, of tiles that one block each takes in order. Rows without a token
// come last: theirs is `none`, the number behind the last token.
constexpr int k_digits = 256;  // k_block threads, one for each digit
constexpr int k_sorted_tile = 512;
static_assert(k_digits == k_block);

struct TokenRow {
  uint32_t token, row;
};

__device__ inline unsigned digit_of(TokenRow row, int shift) { return row.token >> shift & (k_digits - 1); }
__device__ inline int tile_size(int64_t rows, int64_t tile) {
  return static_cast<int>(rows - tile * k_sorted_tile < k_sorted_tile ? rows - tile * k_sorted_tile : k_sorted_tile);
}

__global__ void __launch_bounds__(k_block)
    number_rows(int64_t rows, const int32_t* tokens, uint32_t none, TokenRow* numbered) {
  visit_array<1>(rows, [&](auto, int64_t r) {
    const auto token = static_cast<uint32_t>(tokens[r]);  // below 0: greater than all others
    numbered[r] = {token < none ? token : none, static_cast<uint32_t>(r)};
  });
}

// counts[tile][digit]
__global__ void __launch_bounds__(k_block) count_digits(int64_t rows, const TokenRow* from, int shift, int* counts) {
  __shared__ int own[k_digits];
  const TokenRow* tile = from + int64_t{blockIdx.x} * k_sorted_tile;
  own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < tile_size(rows, blockIdx.x); i += k_block)
    atomic_add(&own[digit_of(tile[i], shift)], 1);
  __syncthreads();
  counts[int64_t{blockIdx.x} * k_digits + threadIdx.x] = own[threadIdx.x];
}

// counts[tile][digit] → where the first row of that digit and tile goes. One block.
__global__ void __launch_bounds__(k_block) place_digits(int64_t tiles, int* counts) {
  __shared__ int totals[2][k_digits];
  const unsigned digit = threadIdx.x;
  int total = 0;
  for (int64_t tile = 0; tile < tiles; ++tile) total += counts[tile * k_digits + digit];
  totals[0][digit] = total;
  int turn = 0;
  for (unsigned reach = 1; reach < k_digits; reach *= 2, turn ^= 1) {
    __syncthreads();
    totals[turn ^ 1][digit] = totals[turn][digit] + (digit >= reach ? totals[turn][digit - reach] : 0);
  }
  int place = totals[turn][digit] - total;
  constexpr int k_at_once = 16;  // read before the first is written
  for (int64_t tile = 0; tile < tiles; tile += k_at_once) {
    int own[k_at_once];
    TPRIMAT_UNROLL
    for (int i = 0; i < k_at_once; ++i) own[i] = tile + i < tiles ? counts[(tile + i) * k_digits + digit] : 0;
    TPRIMAT_UNROLL
    for (int i = 0; i < k_at_once; ++i) {
      if (tile + i < tiles) counts[(tile + i) * k_digits + digit] = place;
      place += own[i];
    }
  }
}

// Each thread takes the rows of its digit, in order.
__global__ void __launch_bounds__(k_block)
    move_rows(int64_t rows, const TokenRow* from, int shift, const int* places, TokenRow* to) {
  __shared__ TokenRow tile[k_sorted_tile];
  const int size = tile_size(rows, blockIdx.x);
  for (int i = static_cast<int>(threadIdx.x); i < size; i += k_block)
    tile[i] = from[int64_t{blockIdx.x} * k_sorted_tile + i];
  __syncthreads();
  int place = places[int64_t{blockIdx.x} * k_digits + threadIdx.x];
  for (int i = 0; i < size; ++i)
    if (digit_of(tile[i], shift) == threadIdx.x) to[place++] = tile[i];
}

uint32_t number_of_none(const EmbeddingShape& shape) {
  constexpr int64_t k_max_tokens = int64_t{1} << 31;
  CHECK(shape.vocab >= 0 && shape.vocab <= k_max_tokens);
  return static_cast<uint32_t>(shape.vocab > 0 ? shape.vocab : k_max_tokens);
}

// The rows by token, in scratch memory.
const TokenRow* sort_rows(int64_t rows, const int32_t* tokens, uint32_t none) {
  const int64_t tiles = parts_of(rows, k_sorted_tile);
  auto* sorted = scratch<TokenRow>(2 * rows + parts_of(tiles * k_digits, 2));
  auto* other = sorted + rows;
  auto* counts = reinterpret_cast<int*>(other + rows);
  const KernelLaunch by_tile{dim3(static_cast<unsigned>(tiles)), dim3(k_block), 0, context().stream};
  launch(array_launch(rows, 1), number_rows, rows, tokens, none, sorted);
  for (int shift = 0; shift < static_cast<int>(std::bit_width(none)); shift += 8) {
    launch(by_tile, count_digits, rows, sorted, shift, counts);
    launch({dim3(1), dim3(k_block), 0, context().stream}, place_digits, tiles, counts);
    launch(by_tile, move_rows, rows, sorted, shift, counts, other);
    std::swap(sorted, other);
  }
  return sorted;
}

// The sorted rows [begin, end) have one token.
struct TokenRun {
  const TokenRow* rows;
  int64_t begin, end;
};

__device__ inline TokenRun run_from(const TokenRow* sorted, int64_t rows, int64_t begin) {
  const uint32_t token = sorted[begin].token;
  int64_t end = begin + 1, reach = 1;  // ever further, then halving what is between
  while (end < rows && sorted[end].token == token) {
    reach *= 2;
    end += reach;
  }
  int64_t inside = end - reach, outside = end < rows ? end : rows;
  while (outside - inside > 1) {
    const int64_t middle = inside + (outside - inside) / 2;
    (sorted[middle].token == token ? inside : outside) = middle;
  }
  return {sorted, begin, outside};
}

template <int n, class T>
__device__ void add_run(const TokenRun& run, int64_t first, int64_t step, const T* dy, int64_t cols, float* sums) {
  for (int64_t i = run.begin + first; i < run.end; i += step) {
    const Chunk<T, n> grad = read_chunk<n>(dy + int64_t{run.rows[i].row} * cols);
    TPRIMAT_UNROLL
    for (int j = 0; j < n; ++j) sums[j] += load(grad.values[j]);
  }
}

template <int n>
__device__ void add_to_row(float* row, const float* sums) {
  Chunk<float, n> total = read_chunk<n>(row);
  TPRIMAT_UNROLL
  for (int j = 0; j < n; ++j) total.values[j] += sums[j];
  write_chunk<n>(row, total);
}

constexpr int k_sum_columns = 32;  // threads along the columns, where others of the block take other rows
constexpr int k_long_run = 4 * k_block / k_sum_columns;

// A token of few rows: each thread adds up its columns of all of them.
template <class T, int n>
__device__ void sum_short_run(const TokenRun& run, int64_t cols, const T* dy, float* to) {
  for (int64_t c = (int64_t{blockIdx.y} * k_block + threadIdx.x) * n; c < cols; c += int64_t{gridDim.y} * k_block * n) {
    float sums[n] = {};
    add_run<n>(run, 0, 1, dy + c, cols, sums);
    add_to_row<n>(to + c, sums);
  }
}

// A token of many: the rows too are shared out.
template <class T, int n>
__device__ void sum_long_run(const TokenRun& run, int64_t cols, const T* dy, float* to) {
  constexpr int k_high = k_block / k_sum_columns;
  __shared__ float parts[k_high][n][k_sum_columns];
  const int x = static_cast<int>(threadIdx.x) % k_sum_columns, y = static_cast<int>(threadIdx.x) / k_sum_columns;
  const int64_t step = int64_t{gridDim.y} * k_sum_columns * n;
  for (int64_t start = int64_t{blockIdx.y} * k_sum_columns * n; start < cols; start += step) {
    const int64_t c = start + x * n;
    float sums[n] = {};
    if (c < cols) add_run<n>(run, y, k_high, dy + c, cols, sums);
    __syncthreads();  // the parts before may still be read
    TPRIMAT_UNROLL
    for (int j = 0; j < n; ++j) parts[y][j][x] = sums[j];
    __syncthreads();
    if (y != 0 || c >= cols) continue;
    TPRIMAT_UNROLL
    for (int j = 0; j < n; ++j)
      for (int other = 1; other < k_high; ++other) sums[j] += parts[other][j][x];
    add_to_row<n>(to + c, sums);
  }
}

// A block for each sorted row, which has work where a token begins.
template <class T, int n>
__global__ void __launch_bounds__(k_block)
    add_token_rows(EmbeddingShape shape, const TokenRow* sorted, uint32_t none, const T* dy, float* dtable) {
  for (int64_t i = blockIdx.x; i < shape.rows; i += gridDim.x) {
    const uint32_t token = sorted[i].token;
    if (token == none) return;
    if (i > 0 && sorted[i - 1].token == token) continue;
    const TokenRun run = run_from(sorted, shape.rows, i);
    float* const to = dtable + int64_t{token} * shape.cols;
    if (run.end - run.begin < k_long_run)
      sum_short_run<T, n>(run, shape.cols, dy, to);
    else
      sum_long_run<T, n>(run, shape.cols, dy, to);
  }
}

template <class T>
void embedding_forward(const EmbeddingShape& shape, const int32_t* tokens, const T* table, T* y) {
  if (shape.rows == 0 || shape.cols == 0) return;
  with_width<T>(fits_packs<T>({table, y}, {shape.cols}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    launch(matrix_launch(shape.rows, shape.cols / n), gather_rows<T, n>, shape, tokens, table, y);
  });
}

template <class T>
void embedding_backward(const EmbeddingShape& shape, const int32_t* tokens, const T* dy, float* dtable) {
  if (shape.rows == 0 || shape.cols == 0) return;
  CHECK(shape.rows < int64_t{1} << 31);
  const uint32_t none = number_of_none(shape);
  const TokenRow* sorted = sort_rows(shape.rows, tokens, none);
  with_width<T>(fits_packs<T>({dy, dtable}, {shape.cols}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    const int64_t across = std::clamp<int64_t>(parts_of(shape.cols, int64_t{k_block} * n), 1, 64);
    const int64_t down = std::min(shape.rows, 4 * most_blocks());
    launch({dim3(static_cast<unsigned>(down), static_cast<unsigned>(across)), dim3(k_block), 0, context().stream},
           add_token_rows<T, n>, shape, sorted, none, dy, dtable);
  });
}

}  // namespace

void set_ops(OpsByFormat<EmbeddingOps>& ops) {
  ops.set_fast([]<class T>(EmbeddingOps<T>& fast) { fast = {embedding_forward<T>, embedding_backward<T>}; });
}

}  // namespace tprimat::engine::gpu
