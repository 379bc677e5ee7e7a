#include "ops/cpu/float_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/float_product.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "device/parallel.h"
#include "ops/cpu/float_panels-inl.h"
#include "ops/cpu/growing_buffer.h"
#include "ops/cpu/instruction_sets.h"
#include "ops/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {
namespace {

// A tile of the result that stays in registers: rows of so many vectors. Measured: docs/decisions.md.
constexpr int64_t k_rows = 6;
constexpr int64_t k_vectors = HWY_MAX_BYTES >= 64 || HWY_ARCH_ARM ? 4 : 2;
constexpr int64_t k_lanes = HWY_MAX_BYTES / sizeof(float);
constexpr int64_t k_columns = k_vectors * k_lanes;

// Measured on a Xeon with 48 KB and 2 MB of cache per core: docs/decisions.md.
// Elements of a sum between two visits of the result.
constexpr int64_t k_max_share = HWY_MAX_BYTES >= 64 ? 768 : 512;
constexpr int64_t k_chunk_floats = 1 << 21;                // of a packed operand: 8 MB
constexpr int64_t k_task_rows = 96, k_task_columns = 256;  // that one thread multiplies without a break
constexpr int64_t k_task_panels = k_task_columns / k_columns;
constexpr int64_t k_ahead = 6;  // elements that a panel is prefetched ahead, from the second-level cache
// Rows whose elements are adjacent are packed too: the faster the tiles, the less that pays.
constexpr bool k_packs_all_rows = HWY_MAX_BYTES < 64;
// Then up to k_resident_columns columns of a share of k_resident_share elements, 1 MB, stay in a thread's second-level
// cache. Each thread packs k_resident_rows of its own rows at a time; twice as many where rows are contiguous, to read
// whole cache lines.
constexpr int64_t k_resident_columns = 1024, k_resident_share = 256;
constexpr int64_t k_resident_rows = 24;
constexpr int64_t k_result_rows = 4096;  // of c at a time, so that the last cache holds them from share to share

int64_t resident_rows(const Lines& rows) { return lie_along(rows) ? k_resident_rows : 2 * k_resident_rows; }

// Rows of the left side of a tile: element k of row r is at data[r·line + k·step].
struct LeftRows {
  const float* data;
  int64_t line, step;
};

// c = left·right or c += left·right.
struct Tile {
  float* c;
  int64_t c_row;
  bool adds;
};

template <int Rows, int Vectors>
HWY_INLINE void store_tile(const Tile tile, hn::Vec<Floats> (&sum)[Rows][Vectors]) {
  const Floats d;
  if (tile.adds)
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v)
        sum[r][v] = hn::Add(sum[r][v], hn::LoadU(d, tile.c + r * tile.c_row + v * k_lanes));
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) hn::StoreU(sum[r][v], d, tile.c + r * tile.c_row + v * k_lanes);
}

// The first `Vectors` vectors of a panel.
template <int Rows, int Vectors>
void multiply_tile(const LeftRows& left, const float* right, int64_t length, const Tile& tile) {
  constexpr int k_apart = 3;  // rows that one pointer and multiples of `line` reach
  constexpr int k_pointers = (Rows + k_apart - 1) / k_apart;
  const Floats d;
  hn::Vec<Floats> sum[Rows][Vectors];
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) sum[r][v] = hn::Zero(d);
  for (int r = 0; r < Rows; ++r)
    for (int64_t i = 0; i < Vectors * k_lanes; i += k_line) __builtin_prefetch(tile.c + r * tile.c_row + i, 1);
  const float* rows[k_pointers];
  for (int p = 0; p < k_pointers; ++p) rows[p] = left.data + p * k_apart * left.line;
  const int64_t line = left.line, step = left.step;
  for (int64_t k = 0; k < length; ++k, right += k_columns) {
    hn::Vec<Floats> columns[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) columns[v] = hn::LoadU(d, right + v * k_lanes);
#pragma GCC unroll 4
    for (int64_t i = 0; i < k_columns; i += k_line) __builtin_prefetch(right + k_ahead * k_columns + i);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      const auto value = hn::Set(d, rows[r / k_apart][r % k_apart * line]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sum[r][v] = hn::MulAdd(value, columns[v], sum[r][v]);
    }
    for (int p = 0; p < k_pointers; ++p) rows[p] += step;
  }
  store_tile<Rows, Vectors>(tile, sum);
}

// The last columns, fewer than a tile has.
inline void put_columns(const float* tile, int64_t rows, int64_t cols, const Tile& to) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < cols; ++i) {
      float& c = to.c[r * to.c_row + i];
      c = to.adds ? c + tile[r * k_columns + i] : tile[r * k_columns + i];
    }
}

using Kernel = void (*)(const LeftRows&, const float*, int64_t, const Tile&);
template <int... Index>
constexpr std::array<Kernel, sizeof...(Index)> kernels_of(std::integer_sequence<int, Index...>) {
  return {multiply_tile<Index / k_vectors + 1, Index % k_vectors + 1>...};
}
// Of a tile with so many rows and columns.
Kernel kernel_for(int64_t rows, int64_t cols) {
  static constexpr auto k_kernels = kernels_of(std::make_integer_sequence<int, k_rows * k_vectors>());
  return k_kernels[static_cast<size_t>((rows - 1) * k_vectors + pieces_of(cols, k_lanes) - 1)];
}

// Rows of the left side, packed or as they lie.
struct Left {
  Lines lines;
  Panels<k_rows> panels;
  LeftRows tile(int64_t row) const {
    if (panels.data != nullptr) return {panels.at(row / k_rows), 1, k_rows};
    return {lines.data + row * lines.row_stride, lines.row_stride, 1};
  }
};

// One share of the sums of a part of c: c = left·right or c += left·right.
struct Chunk {
  Left left;
  Panels<k_columns> right;
  MatrixView<float> c;
  bool adds;
};

// Rows and panels of columns that one thread multiplies without a break.
struct Task {
  int64_t first_row, end_row, first_panel, end_panel;
};

void multiply_task(const Chunk& chunk, const Task& task, Upcoming upcoming = {}) {
  const int64_t length = chunk.right.length;
  const int64_t tiles = pieces_of(task.end_row - task.first_row, k_rows) * (task.end_panel - task.first_panel);
  const int64_t fetched_per_tile = pieces_of(upcoming.cache_lines(), tiles);
  for (int64_t row = task.first_row; row < task.end_row; row += k_rows) {
    const int64_t row_count = std::min(k_rows, task.end_row - row);
    const Kernel multiply_whole = kernel_for(row_count, k_columns);
    const LeftRows rows = chunk.left.tile(row);
    float* const c = chunk.c.data + row * chunk.c.row_stride;
    for (int64_t panel = task.first_panel; panel < task.end_panel; ++panel) {
      const int64_t col = panel * k_columns, cols = std::min(k_columns, chunk.c.cols - col);
      const Tile tile{c + col, chunk.c.row_stride, chunk.adds};
      const float* const columns = chunk.right.at(panel);
      upcoming.fetch(fetched_per_tile);
      if (cols == k_columns) {
        multiply_whole(rows, columns, length, tile);
      } else {
        HWY_ALIGN float whole[k_rows * k_columns];
        kernel_for(row_count, cols)(rows, columns, length, {whole, k_columns, false});
        put_columns(whole, row_count, cols, tile);
      }
    }
  }
}

// Even parts of `count`, each a multiple of `unit` but for the last.
int64_t part_length(int64_t count, int64_t parts, int64_t unit) {
  return ((count + parts - 1) / parts + unit - 1) / unit * unit;
}

// Rows and panels of a task: fewer than the caches hold if threads would be idle.
struct TaskSize {
  int64_t rows, panels;
};

// For all threads to have work.
int64_t wanted_tasks() { return thread_count() == 1 ? 1 : k_pieces_per_thread * thread_count(); }

TaskSize size_tasks(int64_t rows, int64_t panels) {
  constexpr int64_t k_min_rows = 48, k_min_panels = 1;
  const int64_t wanted = wanted_tasks();
  TaskSize size{k_task_rows, k_task_panels};
  const auto are_few = [&] { return pieces_of(rows, size.rows) * pieces_of(panels, size.panels) < wanted; };
  while (are_few() && size.panels > k_min_panels) size.panels /= 2;
  while (are_few() && size.rows > k_min_rows) size.rows /= 2;
  return {part_length(rows, pieces_of(rows, size.rows), k_rows),
          part_length(panels, pieces_of(panels, size.panels), 1)};
}

// Tasks with the same columns come one after the other: these stay in a thread's cache, the rows pass through it.
void multiply_chunk(const Chunk& chunk) {
  const int64_t rows = chunk.c.rows, panels = chunk.right.count;
  const TaskSize size = size_tasks(rows, panels);
  const int64_t down = pieces_of(rows, size.rows), across = pieces_of(panels, size.panels);
  parallel_each(down * across, [&](int64_t task) {
    const int64_t row = task % down * size.rows, panel = task / down * size.panels;
    multiply_task(chunk, {row, std::min(row + size.rows, rows), panel, std::min(panel + size.panels, panels)});
  });
}

// As many lines of a chunk as the packed operand has space for.
int64_t lines_at_a_time(int64_t count, int64_t length, int64_t width) {
  const int64_t most = std::max(k_chunk_floats / length / width, int64_t{1}) * width;
  return part_length(count, pieces_of(count, most), width);
}

// One share of the sums of c; a and b are its elements of the rows and columns.
void multiply_share(const Lines& a, const Lines& b, const MatrixView<float>& c, bool adds) {
  static GrowingBuffer<float> left_panels, right_panels;
  const bool in_place = lie_along(a) && !k_packs_all_rows;
  const int64_t rows = in_place ? a.rows : lines_at_a_time(a.rows, a.cols, k_rows);
  const int64_t cols = lines_at_a_time(b.rows, b.cols, k_columns);
  Chunk chunk{.left = {}, .right = {}, .c = {}, .adds = adds};
  for (int64_t row = 0; row < a.rows; row += rows) {
    chunk.left.lines = part(a, row, std::min(rows, a.rows - row), 0, a.cols);
    if (!in_place) chunk.left.panels = pack<k_rows>(chunk.left.lines, left_panels);
    for (int64_t col = 0; col < b.rows; col += cols) {
      const Lines columns = part(b, col, std::min(cols, b.rows - col), 0, b.cols);
      if (row == 0 || cols < b.rows) chunk.right = pack<k_columns>(columns, right_panels);
      chunk.c = {c.data + row * c.row_stride + col, chunk.left.lines.rows, columns.rows, c.row_stride, 1};
      multiply_chunk(chunk);
    }
  }
}

// Like multiply_share, but all columns stay in each thread's cache. Each thread packs its own rows and, while it
// multiplies, prefetches its likely next ones: those before, since several threads begin with their last piece
// (ThreadPool).
void multiply_by_resident(const Lines& a, const Lines& b, const MatrixView<float>& c, bool adds) {
  static GrowingBuffer<float> right_panels;
  const Panels<k_columns> right = pack<k_columns>(b, right_panels);
  const int64_t at_a_time = resident_rows(a), pieces = pieces_of(a.rows, at_a_time);
  const int64_t next = thread_count() == 1 ? 1 : -1;
  const auto rows_of = [&](int64_t piece) {
    const int64_t row = piece * at_a_time;
    return part(a, row, std::min(at_a_time, a.rows - row), 0, a.cols);
  };
  parallel_each(pieces, [&](int64_t piece) {
    thread_local GrowingBuffer<float> left_panels;
    const int64_t row = piece * at_a_time;
    const Lines lines = rows_of(piece);
    const Left left{lines, {left_panels.at_least(at_a_time * a.cols), pieces_of(lines.rows, k_rows), a.cols}};
    pack_panels<k_rows>(lines, left.panels.data);
    const bool is_last = piece + next < 0 || piece + next == pieces;
    multiply_task({left, right, {c.data + row * c.row_stride, lines.rows, c.cols, c.row_stride, 1}, adds},
                  {0, lines.rows, 0, right.count}, is_last ? Upcoming() : Upcoming(rows_of(piece + next)));
  });
}

// How a product is cut. The length of a share fixes the order of summation, so it depends neither on the number of
// threads nor on that of rows.
struct Cut {
  Cut(const MatrixView<const float>& a, const MatrixView<const float>& b) {
    const bool fit = k_packs_all_rows && b.cols <= k_resident_columns;
    share = pieces_of(a.cols, pieces_of(a.cols, fit ? k_resident_share : k_max_share));
    are_resident = fit && pieces_of(a.rows, resident_rows(a)) >= wanted_tasks();
    rows = are_resident ? part_length(a.rows, pieces_of(a.rows, k_result_rows), 2 * k_resident_rows) : a.rows;
  }
  int64_t share;
  bool are_resident;  // the columns
  int64_t rows;       // of the result, of which all shares are multiplied before the next
};

void multiply(const MatrixView<const float>& a, const MatrixView<const float>& b, const MatrixView<float>& c,
              bool accumulate) {
  const Lines columns = transposed(b);
  const Cut cut(a, b);
  for (int64_t row = 0; row < a.rows; row += cut.rows)
    for (int64_t begin = 0; begin < a.cols; begin += cut.share) {
      const int64_t rows = std::min(cut.rows, a.rows - row), length = std::min(cut.share, a.cols - begin);
      const auto multiply_one = cut.are_resident ? multiply_by_resident : multiply_share;
      multiply_one(part(a, row, rows, begin, length), part(columns, 0, b.cols, begin, length),
                   {c.data + row * c.row_stride, rows, c.cols, c.row_stride, 1}, accumulate || begin > 0);
    }
}

const char* instructions() {
  if (HWY_NATIVE_FMA == 0) return "";
  if (HWY_ARCH_ARM) return "NEON";
  return !HWY_ARCH_X86 ? "" : HWY_MAX_BYTES >= 64 ? "AVX-512" : "AVX2";
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tprimat::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat::engine {
HWY_EXPORT(multiply);
HWY_EXPORT(instructions);

std::string_view float_product_instructions() {
  static const std::string_view chosen = (limit_kernels(), HWY_DYNAMIC_DISPATCH(instructions)());
  return chosen;
}

void multiply_float(const MatrixView<const float>& a, const MatrixView<const float>& b, const MatrixView<float>& c,
                    bool accumulate) {
  HWY_DYNAMIC_DISPATCH(multiply)(a, b, c, accumulate);
}

}  // namespace tprimat::engine
#endif
