#include "ops/cpu/float_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/float_product.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "device/parallel.h"
#include "ops/cpu/growing_buffer.h"
#include "ops/cpu/instruction_sets.h"
#include "ops/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {
namespace {

// A tile of the result that stays in registers: rows of so many vectors. Of all tiles that fit, the nearest to a square
// takes the fewest loads.
constexpr int64_t k_rows = HWY_MAX_BYTES >= 64 || HWY_ARCH_ARM ? 6 : 4;
constexpr int64_t k_vectors = HWY_MAX_BYTES >= 64 || HWY_ARCH_ARM ? 4 : 3;
constexpr int64_t k_lanes = HWY_MAX_BYTES / sizeof(float);
constexpr int64_t k_columns = k_vectors * k_lanes;
constexpr int64_t k_line = 64 / sizeof(float);  // of a cache

// Measured on a Xeon with 48 KB and 2 MB of cache per core: docs/decisions.md.
constexpr int64_t k_max_share = 768;                        // elements of a sum between two visits of the result
constexpr int64_t k_max_chunk = 3 * k_max_share;            // packed at a time
constexpr int64_t k_chunk_floats = 1 << 21;                 // of a packed operand: 8 MB
constexpr int64_t k_task_rows = 192, k_task_columns = 256;  // that one thread multiplies without a break
constexpr int64_t k_task_panels = k_task_columns / k_columns;
constexpr int64_t k_ahead = 6;  // elements that a panel is prefetched ahead, from the second-level cache

int64_t share_of(int64_t length) {
  const int64_t shares = (length + k_max_share - 1) / k_max_share;
  return (length + shares - 1) / shares;
}

int64_t panel_count(int64_t lines, int64_t width) { return (lines + width - 1) / width; }

// One operand: its rows are the lines of a product, rows of a and columns of b.
using Lines = MatrixView<const float>;

bool lie_along(const Lines& lines) { return lines.col_stride == 1; }

// `count` lines and `length` elements of them.
Lines part(const Lines& from, int64_t line, int64_t count, int64_t begin, int64_t length) {
  return {from.data + line * from.row_stride + begin * from.col_stride, count, length, from.row_stride,
          from.col_stride};
}

// A packed operand: its shares one after the other, of each the panels of `Width` lines; a panel holds element 0 of all
// its lines, then element 1. Lines past the last are zero.
template <int64_t Width>
struct Panels {
  float* data;
  int64_t count;
  float* at(int64_t begin, int64_t panel, int64_t length) const {
    return data + (begin * count + panel * length) * Width;
  }
};

// Neighbouring panels of one share whose lines lie side by side: memory is read in long runs.
template <int64_t Width>
void pack_across(const Lines& from, float* to) {
  const int64_t whole = from.rows / Width, rest = from.rows % Width, panel = from.cols * Width;
  for (int64_t k = 0; k < from.cols; ++k, to += Width) {
    const float* const row = from.data + k * from.col_stride;
    for (int64_t p = 0; p < whole; ++p) std::memcpy(to + p * panel, row + p * Width, Width * sizeof(float));
    if (rest == 0) continue;
    float* const last = to + whole * panel;
    std::copy_n(row + whole * Width, rest, last);
    std::fill_n(last + rest, Width - rest, 0.0f);
  }
}

// The lines of one panel lie one after the other, each along its elements.
template <int64_t Width>
void pack_along(const Lines& from, float* to) {
  constexpr int64_t k_square = 4;
  const int64_t lines = from.rows / k_square * k_square, elements = from.cols / k_square * k_square;
  for (int64_t begin = 0; begin < elements; begin += k_line)
    for (int64_t i = 0; i < lines; i += k_square)
      for (int64_t k = begin; k < std::min(begin + k_line, elements); k += k_square)
        transpose4(from.data + i * from.row_stride + k, from.row_stride, to + k * Width + i, Width);
  for (int64_t k = 0; k < from.cols; ++k) {
    const int64_t first = k < elements ? lines : 0;  // the squares have the others
    for (int64_t i = first; i < from.rows; ++i) to[k * Width + i] = from.data[i * from.row_stride + k];
    std::fill(to + k * Width + from.rows, to + (k + 1) * Width, 0.0f);
  }
}

// All threads together.
template <int64_t Width>
Panels<Width> pack(const Lines& from, int64_t share, GrowingBuffer<float>& buffer) {
  constexpr int64_t k_together = 8;  // panels
  CHECK(lie_along(from) || from.row_stride == 1 || from.rows == 1);
  const int64_t count = panel_count(from.rows, Width);
  const Panels<Width> panels{buffer.at_least(from.cols * count * Width), count};
  const int64_t groups = panel_count(panels.count, k_together), shares = panel_count(from.cols, share);
  parallel_each(groups * shares, [&](int64_t piece) {
    const int64_t begin = piece / groups * share, length = std::min(share, from.cols - begin);
    const int64_t first = piece % groups * k_together, end = std::min(first + k_together, panels.count);
    const auto lines = [&](int64_t panel, int64_t together) {
      return part(from, panel * Width, std::min(together * Width, from.rows - panel * Width), begin, length);
    };
    if (!lie_along(from)) return pack_across<Width>(lines(first, end - first), panels.at(begin, first, length));
    for (int64_t panel = first; panel < end; ++panel)
      pack_along<Width>(lines(panel, 1), panels.at(begin, panel, length));
  });
  return panels;
}

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
  return k_kernels[static_cast<size_t>((rows - 1) * k_vectors + panel_count(cols, k_lanes) - 1)];
}

// Part of a product: rows and columns of c, and elements [begin, end) of their sums.
struct Chunk {
  int64_t row, rows, col, cols, begin, end;
};

struct Product {
  Lines left, right;
  MatrixView<float> c;
  bool adds;
  int64_t share;
};

// The rows of the left side, packed or as they lie.
struct Left {
  Lines lines;  // of the chunk
  Panels<k_rows> panels;
  LeftRows tile(int64_t begin, int64_t length, int64_t row) const {
    if (panels.data != nullptr) return {panels.at(begin, row / k_rows, length), 1, k_rows};
    return {lines.data + row * lines.row_stride + begin, lines.row_stride, 1};
  }
};

// Rows and panels of columns that one thread multiplies without a break.
struct Task {
  int64_t first_row, end_row, first_panel, end_panel;
};

void multiply_task(const Product& p, const Chunk& chunk, const Left& left, const Panels<k_columns>& right,
                   const Task& task) {
  for (int64_t begin = 0; begin < chunk.end - chunk.begin; begin += p.share) {
    const int64_t length = std::min(p.share, chunk.end - chunk.begin - begin);
    const bool adds = p.adds || chunk.begin + begin > 0;
    for (int64_t row = task.first_row; row < task.end_row; row += k_rows) {
      const int64_t row_count = std::min(k_rows, task.end_row - row);
      const Kernel multiply_whole = kernel_for(row_count, k_columns);
      const LeftRows rows = left.tile(begin, length, row);
      float* const c = p.c.data + (chunk.row + row) * p.c.row_stride + chunk.col;
      for (int64_t panel = task.first_panel; panel < task.end_panel; ++panel) {
        const int64_t col = panel * k_columns, cols = std::min(k_columns, chunk.cols - col);
        const Tile tile{c + col, p.c.row_stride, adds};
        const float* const columns = right.at(begin, panel, length);
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
}

// Even parts of `count`, each a multiple of `unit` but for the last.
int64_t part_length(int64_t count, int64_t parts, int64_t unit) {
  return ((count + parts - 1) / parts + unit - 1) / unit * unit;
}

// Rows and panels of a task: fewer than the caches hold if threads would be idle.
struct TaskSize {
  int64_t rows, panels;
  int64_t count(const Chunk& chunk, int64_t all_panels) const {
    return panel_count(chunk.rows, rows) * panel_count(all_panels, panels);
  }
};

TaskSize size_tasks(const Chunk& chunk, int64_t panels) {
  constexpr int64_t k_min_rows = 96, k_min_panels = 1;
  const int64_t wanted = thread_count() == 1 ? 1 : k_pieces_per_thread * thread_count();
  TaskSize size{k_task_rows, k_task_panels};
  while (size.count(chunk, panels) < wanted && size.panels > k_min_panels) size.panels /= 2;
  while (size.count(chunk, panels) < wanted && size.rows > k_min_rows) size.rows /= 2;
  return {part_length(chunk.rows, panel_count(chunk.rows, size.rows), k_rows),
          part_length(panels, panel_count(panels, size.panels), 1)};
}

void multiply_chunk(const Product& p, const Chunk& chunk, const Left& left, const Panels<k_columns>& right) {
  const TaskSize size = size_tasks(chunk, right.count);
  const int64_t across = panel_count(right.count, size.panels);
  parallel_each(size.count(chunk, right.count), [&](int64_t task) {
    const int64_t row = task / across * size.rows, panel = task % across * size.panels;
    multiply_task(p, chunk, left, right,
                  {row, std::min(row + size.rows, chunk.rows), panel, std::min(panel + size.panels, right.count)});
  });
}

// As many lines of a chunk as the packed operand has space for.
int64_t lines_at_a_time(int64_t count, int64_t length, int64_t width) {
  const int64_t most = std::max(k_chunk_floats / length / width, int64_t{1}) * width;
  return part_length(count, panel_count(count, most), width);
}

void multiply_columns(const Product& p, Chunk chunk) {
  static GrowingBuffer<float> left_panels, right_panels;
  const int64_t length = chunk.end - chunk.begin;
  const auto right = pack<k_columns>(part(p.right, chunk.col, chunk.cols, chunk.begin, length), p.share, right_panels);
  const bool in_place = lie_along(p.left);
  const int64_t rows = in_place ? p.left.rows : lines_at_a_time(p.left.rows, length, k_rows);
  for (chunk.row = 0; chunk.row < p.left.rows; chunk.row += rows) {
    chunk.rows = std::min(rows, p.left.rows - chunk.row);
    const Lines lines = part(p.left, chunk.row, chunk.rows, chunk.begin, length);
    const auto panels = in_place ? Panels<k_rows>{} : pack<k_rows>(lines, p.share, left_panels);
    multiply_chunk(p, chunk, {lines, panels}, right);
  }
}

void multiply(const MatrixView<const float>& a, const MatrixView<const float>& b, const MatrixView<float>& c,
              bool accumulate) {
  const Product p{a, transposed(b), c, accumulate, share_of(a.cols)};
  const int64_t longest = k_max_chunk / p.share * p.share;
  for (int64_t begin = 0; begin < a.cols; begin += longest) {
    const int64_t length = std::min(longest, a.cols - begin), cols = lines_at_a_time(b.cols, length, k_columns);
    for (int64_t col = 0; col < b.cols; col += cols)
      multiply_columns(p, {0, 0, col, std::min(cols, b.cols - col), begin, begin + length});
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
