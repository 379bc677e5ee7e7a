// Per-target include (no #pragma once): operands of float products, packed for tiles of the result.
#if defined(TPRIMAT_OPS_CPU_FLOAT_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TPRIMAT_OPS_CPU_FLOAT_PANELS_INL_H_
#undef TPRIMAT_OPS_CPU_FLOAT_PANELS_INL_H_
#else
#define TPRIMAT_OPS_CPU_FLOAT_PANELS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "device/parallel.h"
#include "ops/cpu/growing_buffer.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/matmul.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

constexpr int64_t k_line = 64 / sizeof(float);  // of a cache
constexpr int64_t k_pack_lines = 192;  // packed by one thread without a break: memory is read in runs of 768 bytes

// How many pieces of `size` hold `count`.
inline int64_t pieces_of(int64_t count, int64_t size) { return (count + size - 1) / size; }

// One operand: its rows are the lines of a product, rows of a and columns of b.
using Lines = MatrixView<const float>;

inline bool lie_along(const Lines& lines) { return lines.col_stride == 1; }

// `count` lines and `length` elements of them.
inline Lines part(const Lines& from, int64_t line, int64_t count, int64_t begin, int64_t length) {
  return {from.data + line * from.row_stride + begin * from.col_stride, count, length, from.row_stride,
          from.col_stride};
}

// A packed operand: panels of `Width` lines; a panel holds element 0 of all its lines, then element 1. Lines past the
// last are zero.
template <int64_t Width>
struct Panels {
  float* data;
  int64_t count, length;
  float* at(int64_t panel) const { return data + panel * length * Width; }
};

// Neighbouring panels whose lines lie side by side. A few elements of all lines at a time: they are read in long runs,
// of which no hardware prefetcher foresees the next one, and a panel is written some cache lines at a time.
template <int64_t Width>
void pack_across(const Lines& from, float* to) {
  constexpr int64_t k_elements = 8;
  const int64_t whole = from.rows / Width, rest = from.rows % Width, panel = from.cols * Width;
  for (int64_t begin = 0; begin < from.cols; begin += k_elements) {
    const int64_t end = std::min(begin + k_elements, from.cols);
    for (int64_t k = end; k < std::min(end + k_elements, from.cols); ++k)
      for (int64_t i = 0; i < from.rows; i += k_line) __builtin_prefetch(from.data + k * from.col_stride + i, 0, 2);
    for (int64_t p = 0; p < whole; ++p)
      for (int64_t k = begin; k < end; ++k)
        std::memcpy(to + p * panel + k * Width, from.data + k * from.col_stride + p * Width, Width * sizeof(float));
    if (rest == 0) continue;
    for (int64_t k = begin; k < end; ++k) {
      float* const last = to + whole * panel + k * Width;
      std::copy_n(from.data + k * from.col_stride + whole * Width, rest, last);
      std::fill_n(last + rest, Width - rest, 0.0f);
    }
  }
}

// The lines of one panel lie one after the other, each along its elements. The last square of lines begins so early
// that it is whole.
template <int64_t Width>
void pack_along(const Lines& from, float* to) {
  constexpr int64_t k_square = 4;
  const int64_t elements = from.rows < k_square ? 0 : from.cols / k_square * k_square;
  for (int64_t begin = 0; begin < elements; begin += k_line)
    for (int64_t line = 0; line < from.rows; line += k_square) {
      const int64_t i = std::min(line, from.rows - k_square);
      for (int64_t k = begin; k < std::min(begin + k_line, elements); k += k_square)
        transpose4(from.data + i * from.row_stride + k, from.row_stride, to + k * Width + i, Width);
    }
  for (int64_t k = elements; k < from.cols; ++k)
    for (int64_t i = 0; i < from.rows; ++i) to[k * Width + i] = from.data[i * from.row_stride + k];
  for (int64_t k = 0; k < from.cols && from.rows < Width; ++k)
    std::fill(to + k * Width + from.rows, to + (k + 1) * Width, 0.0f);
}

// Neighbouring panels.
template <int64_t Width>
void pack_panels(const Lines& from, float* to) {
  CHECK(lie_along(from) || from.row_stride == 1 || from.rows == 1);
  if (!lie_along(from)) return pack_across<Width>(from, to);
  for (int64_t line = 0; line < from.rows; line += Width)
    pack_along<Width>(part(from, line, std::min(Width, from.rows - line), 0, from.cols), to + line * from.cols);
}

// All threads together.
template <int64_t Width>
Panels<Width> pack(const Lines& from, GrowingBuffer<float>& buffer) {
  constexpr int64_t k_together = k_pack_lines / Width;  // panels
  const int64_t count = pieces_of(from.rows, Width);
  const Panels<Width> panels{buffer.at_least(from.cols * count * Width), count, from.cols};
  parallel_each(pieces_of(count, k_together), [&](int64_t piece) {
    const int64_t panel = piece * k_together, line = panel * Width;
    pack_panels<Width>(part(from, line, std::min(k_together * Width, from.rows - line), 0, from.cols),
                       panels.at(panel));
  });
  return panels;
}

// Lines that will be packed next: fetched to the second-level cache, a few cache lines at a time.
class Upcoming {
 public:
  Upcoming() = default;
  explicit Upcoming(const Lines& lines)
      : at_(lines.data),
        runs_(lie_along(lines) ? lines.rows : lines.cols),
        run_(lie_along(lines) ? lines.cols : lines.rows),
        apart_(lie_along(lines) ? lines.row_stride : lines.col_stride) {}
  int64_t cache_lines() const { return runs_ * pieces_of(run_, k_line); }
  HWY_INLINE void fetch(int64_t count) {
    for (; count > 0 && runs_ > 0; --count) {
      __builtin_prefetch(at_ + fetched_, 0, 2);
      fetched_ += k_line;
      if (fetched_ < run_) continue;
      fetched_ = 0, at_ += apart_, --runs_;
    }
  }

 private:
  const float* at_ = nullptr;  // the run of elements that is being fetched
  int64_t runs_ = 0, run_ = 0, apart_ = 0;
  int64_t fetched_ = 0;  // elements of the run
};

}  // namespace HWY_NAMESPACE
}  // namespace tprimat::engine
HWY_AFTER_NAMESPACE();

#endif
