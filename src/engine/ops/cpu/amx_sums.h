#pragma once

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "ops/cpu/amx_activations.h"
#include "ops/cpu/amx_tiles.h"
#include "ops/cpu/bf16_share.h"
#include "ops/cpu/bf16_vectors.h"
#include "ops/cpu/large_results.h"
#include "ops/cpu/transpose16.h"
#include "ops/matmul.h"

// Where the sums of a product by AMX go, block by block of 32×32: to the result, or through an epilogue. A class has
//   k_by_turns            whether columns come by turns: for the same 32 rows, a block of the second half right after
//                         that of the first
//   store(SumRows)        some rows of sums, of one block after the other
//   finish()              where it has one: after the last block
//   squares()             where it has one: Σ of the squares of what was stored so far, if share.squares is given
#if TPRIMAT_HAS_AVX512_BF16
namespace tprimat::engine::amx {

// Rows [first, end) of a block of sums that starts at (row, col) of the product.
struct SumRows {
  const float* block;
  int64_t row, col, first, end;
};

template <class C>
bool adds_in_place(const Bf16Share<C>& share) {
  return static_cast<const void*>(share.addend) == share.c;
}

// Whether a share's result goes past the caches: where it is large, and neither this share adds to what c holds nor a
// later one reads these sums.
template <class C>
bool streams(const Bf16Share<C>& share) {
  const bool is_last = share.begin + share.length == share.left.length;
  return is_last && !adds_in_place(share) &&
         is_large(share.left.count * share.c_stride * static_cast<int64_t>(sizeof(C)));
}

inline bool starts_line(const void* memory) { return reinterpret_cast<uintptr_t>(memory) % 64 == 0; }

inline __mmask16 low_half(__mmask32 lanes) { return static_cast<__mmask16>(lanes); }
inline __mmask16 high_half(__mmask32 lanes) { return static_cast<__mmask16>(lanes >> 16); }

TPRIMAT_INLINE_AVX512_BF16 inline void store_line(bf16* to, __mmask32 present, __m512i values, bool streams) {
  if (streams && present == ~__mmask32{0} && starts_line(to))
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), values);
  else
    _mm512_mask_storeu_epi16(to, present, values);
}
TPRIMAT_INLINE_AVX512_BF16 inline void store_half(float* to, __mmask16 present, __m512 values, bool streams) {
  if (streams && present == static_cast<__mmask16>(~0) && starts_line(to))
    _mm512_stream_ps(to, values);
  else
    _mm512_mask_storeu_ps(to, present, values);
}

template <class C>
int64_t rows_in_block(const Bf16Share<C>& share, int64_t row) {
  return std::min(k_panel_lines, share.left.count - row);
}

// Calls finish(r, present, low, high) for each of `rows` that the result has: r counts within the block, low and high
// are its sums for columns [col, col + 32) of the result, the addend included, and `present` the columns that exist.
template <class C, class Finish>
TPRIMAT_INLINE_AVX512_BF16 inline void visit_sums(const Bf16Share<C>& share, const SumRows& rows, int64_t col,
                                                  const Finish& finish) {
  const int64_t end = std::min(rows.end, rows_in_block(share, rows.row));
  const __mmask32 present = first_lanes(share.right.count - col);
  for (int64_t r = rows.first; r < end; ++r) {
    const float* const sums = rows.block + r * k_panel_lines;
    __m512 low = _mm512_loadu_ps(sums), high = _mm512_loadu_ps(sums + k_lanes);
    if (share.addend != nullptr) {
      const float* const addend = share.addend + (rows.row + r) * share.addend_stride + col;
      low = _mm512_add_ps(low, _mm512_maskz_loadu_ps(low_half(present), addend));
      high = _mm512_add_ps(high, _mm512_maskz_loadu_ps(high_half(present), addend + k_lanes));
    }
    finish(r, present, low, high);
  }
}
#define TPRIMAT_FINISH_ROW \
  [&](int64_t r, __mmask32 present, __m512 low, __m512 high) __attribute__((always_inline)) TPRIMAT_AVX512_BF16

// The bias of 32 columns, where there is one.
struct Bias {
  TPRIMAT_INLINE_AVX512_BF16 Bias(const bf16* bias, int64_t col, __mmask32 present) {
    low = high = _mm512_setzero_ps();
    if (bias == nullptr) return;
    low = widen(bias + col, low_half(present)), high = widen(bias + col + k_lanes, high_half(present));
  }
  TPRIMAT_INLINE_AVX512_BF16 __m512i add(__m512 low_sums, __m512 high_sums) const {
    return narrow_both(_mm512_add_ps(low_sums, low), _mm512_add_ps(high_sums, high));
  }
  __m512 low, high;
};

// c = sums; where C is bf16, c = sums + bias, rounded.
template <class C>
class PlainSums {
 public:
  static constexpr bool k_by_turns = false;
  explicit PlainSums(const Bf16Share<C>& share, const bf16* bias = nullptr)
      : share_(share), bias_(bias), streams_(streams(share)) {}

  TPRIMAT_AVX512_BF16 void store(const SumRows& rows) {
    const Bias bias(bias_, rows.col, first_lanes(share_.right.count - rows.col));
    __m512 squares = _mm512_setzero_ps();
    visit_sums(
        share_, rows, rows.col, TPRIMAT_FINISH_ROW {
          C* const to = share_.c + (rows.row + r) * share_.c_stride + rows.col;
          if constexpr (std::is_same_v<C, float>) {
            squares = _mm512_fmadd_ps(low, low, _mm512_fmadd_ps(high, high, squares));
            store_half(to, low_half(present), low, streams_);
            store_half(to + k_lanes, high_half(present), high, streams_);
          } else {
            store_line(to, present, bias.add(low, high), streams_);
          }
        });
    if (share_.squares != nullptr) add_squares(squares);
  }
  // Σ of the squares of what was stored so far, if share.squares is given.
  double squares() const { return std::accumulate(squares_, squares_ + k_lanes, 0.0); }

 private:
  TPRIMAT_INLINE_AVX512_BF16 void add_squares(__m512 some) {
    constexpr int64_t k_half = k_lanes / 2;
    const __m256 halves[2] = {_mm512_castps512_ps256(some), _mm512_extractf32x8_ps(some, 1)};
    for (int64_t i = 0; i < 2; ++i)
      _mm512_store_pd(squares_ + i * k_half,
                      _mm512_add_pd(_mm512_load_pd(squares_ + i * k_half), _mm512_cvtps_pd(halves[i])));
  }

  const Bf16Share<C>& share_;
  const bf16* bias_;
  bool streams_;
  alignas(64) double squares_[k_lanes] = {};
};

// What the backward pass of an activation needs lies in blocks as the sums do, without gaps: for 32 rows one block of
// 32 columns after the other, of these row by row. The place of the block's row r in a matrix of `width` columns.
struct BlockRow {
  int64_t row, col, r;
};
// `rows`: of that block.
inline int64_t place_in_blocks(const BlockRow& of, int64_t rows, int64_t width) {
  return of.row * width + of.col * rows + of.r * k_panel_lines;
}
inline int64_t kept_place(const Bf16Share<bf16>& share, int64_t width, int64_t row, int64_t col, int64_t r) {
  return place_in_blocks({row, col, r}, rows_in_block(share, row), width);
}

// How a matrix lies: in whole blocks (MatrixView), or row by row.
struct Layout {
  bool in_blocks;
  int64_t row_stride;
};
inline int64_t place_of(const BlockRow& of, const Layout& layout) {
  if (layout.in_blocks) return place_in_blocks(of, k_panel_lines, layout.row_stride);
  return (of.row + of.r) * layout.row_stride + of.col;
}

// What the sums of an activation or its gradient have in common. What is kept for the backward pass goes past the
// caches however small it is.
class ActivationSums {
 protected:
  ActivationSums(const Bf16Share<bf16>& share, const Epilogue<bf16>& epilogue, int64_t width)
      : share_(share), epilogue_(epilogue), width_(width), streams_(streams(share)) {}
  // In the activation's output, or in the gradient of its input.
  int64_t place(const BlockRow& of, int64_t row_stride) const {
    return place_of(of, {epilogue_.to_blocks, row_stride});
  }
  bf16* result(const SumRows& rows, int64_t r) const {
    return share_.c + place({rows.row, rows.col, r}, share_.c_stride);
  }

  const Bf16Share<bf16>& share_;
  const Epilogue<bf16>& epilogue_;
  int64_t width_;  // of what the activation makes
  bool streams_;
};

// before_gelu = sums + bias, or its slope; c = gelu(sums + bias).
class GeluSums : public ActivationSums {
 public:
  static constexpr bool k_by_turns = false;
  GeluSums(const Bf16Share<bf16>& share, const Epilogue<bf16>& epilogue)
      : ActivationSums(share, epilogue, share.right.count) {}

  TPRIMAT_AVX512_BF16 void store(const SumRows& rows) const {
    const Bias bias(epilogue_.bias, rows.col, ~__mmask32{0});
    visit_sums(
        share_, rows, rows.col, TPRIMAT_FINISH_ROW {
          const __m512i before = bias.add(low, high);
          const GeluLine line(before);
          store_line(epilogue_.before_gelu + kept_place(share_, width_, rows.row, rows.col, r), present,
                     epilogue_.keeps_slopes ? line.slope() : before, true);
          store_line(result(rows, r), present, line.value(), streams_);
        });
  }
};

// c = sums ⊙ gelu'(gelu_input), or sums ⊙ gelu_input where that is the slopes.
class GeluGradientSums : public ActivationSums {
 public:
  static constexpr bool k_by_turns = false;
  GeluGradientSums(const Bf16Share<bf16>& share, const Epilogue<bf16>& epilogue)
      : ActivationSums(share, epilogue, share.right.count) {}

  TPRIMAT_AVX512_BF16 void store(const SumRows& rows) const {
    visit_sums(
        share_, rows, rows.col, TPRIMAT_FINISH_ROW {
          __m512i slopes = _mm512_loadu_si512(epilogue_.gelu_input + kept_place(share_, width_, rows.row, rows.col, r));
          if (!epilogue_.keeps_slopes) slopes = GeluLine(slopes).slope();
          store_line(result(rows, r), present, scaled_line(slopes, low, high), streams_);
        });
  }
};

// [gate, up] = sums + bias, swiglu = silu(gate)·up; c = [gate, up], or the slopes of both. The columns of the sums pass
// by in turns. The upper rows of a gate and its up are multiplied while the up is stored, the lower ones while the next
// gate is: the tile unit has as much work beside it in every block whose sums are stored.
class SwigluSums : public ActivationSums {
 public:
  static constexpr bool k_by_turns = true;
  SwigluSums(const Bf16Share<bf16>& share, const Epilogue<bf16>& epilogue)
      : ActivationSums(share, epilogue, share.right.count / 2) {
    streams_ = is_large(share.left.count * width_ * static_cast<int64_t>(sizeof(bf16)));  // not c, but half as much
  }

  TPRIMAT_AVX512_BF16 void store(const SumRows& rows) {
    const int64_t first = rows.first / 2, end = std::min(rows.end, k_panel_lines) / 2;
    if (is_up(rows.col)) {
      if (rows.first == 0)
        pair_ = {rows.row, inner_column(rows.col), rows_in_block(share_, rows.row)}, turn_ = 1 - turn_;
      keep(rows, width_, k_panel_lines, ups_);
      multiply(first, end);
    } else {
      keep(rows, 0, 0, gates_[1 - turn_]);
      multiply(k_panel_lines / 2 + first, k_panel_lines / 2 + end);
    }
  }
  TPRIMAT_AVX512_BF16 void finish() const { multiply(k_panel_lines / 2, k_panel_lines); }

 private:
  static constexpr int64_t k_block = k_panel_lines * k_panel_lines;

  // Some rows of a gate or an up, whose columns begin at `half`, to `kept`, and to the lines at `line` of c unless the
  // slopes go there.
  TPRIMAT_INLINE_AVX512_BF16 void keep(const SumRows& rows, int64_t half, int64_t line, bf16* kept) const {
    const int64_t col = inner_column(rows.col);
    const Bias bias(epilogue_.bias, half + col, ~__mmask32{0});
    visit_sums(
        share_, rows, half + col, TPRIMAT_FINISH_ROW {
          const __m512i sums = bias.add(low, high);
          if (!epilogue_.keeps_slopes) store_line(kept_line(rows.row, col, r) + line, present, sums, true);
          _mm512_store_si512(kept + r * k_panel_lines, sums);
        });
  }
  TPRIMAT_INLINE_AVX512_BF16 void multiply(int64_t first, int64_t end) const {
    for (int64_t r = first; r < std::min(end, pair_.rows); ++r) {
      const __m512i gate = _mm512_load_si512(gates_[turn_] + r * k_panel_lines),
                    up = _mm512_load_si512(ups_ + r * k_panel_lines);
      const SwigluLine line(gate, up);
      store_line(epilogue_.swiglu + place({pair_.row, pair_.col, r}, width_), ~__mmask32{0}, line.value(), streams_);
      if (!epilogue_.keeps_slopes) continue;
      bf16* const to = kept_line(pair_.row, pair_.col, r);
      store_line(to, ~__mmask32{0}, line.gate_slope(), true);
      store_line(to + k_panel_lines, ~__mmask32{0}, line.up_slope(), true);
    }
  }
  // Of 32 columns of gates, beside that of their ups.
  bf16* kept_line(int64_t row, int64_t col, int64_t r) const {
    return share_.c + 2 * kept_place(share_, width_, row, col, r);
  }
  static bool is_up(int64_t col) { return col / k_panel_lines % 2 != 0; }
  static int64_t inner_column(int64_t col) { return col / (2 * k_panel_lines) * k_panel_lines; }

  struct Pair {
    int64_t row, col, rows;
  };
  alignas(64) bf16 gates_[2][k_block];  // of the pair, and of the next
  alignas(64) bf16 ups_[k_block];
  Pair pair_{};
  int64_t turn_ = 0;  // which gates are the pair's
};

// c = [dgate, dup], the gradients of [gate, up], which swiglu_input is, or the slopes of both; the sums are the
// gradient of silu(gate)·up.
class SwigluGradientSums : public ActivationSums {
 public:
  static constexpr bool k_by_turns = false;
  SwigluGradientSums(const Bf16Share<bf16>& share, const Epilogue<bf16>& epilogue)
      : ActivationSums(share, epilogue, share.right.count) {
    streams_ = exceeds_caches(2 * share.left.count * width_ * static_cast<int64_t>(sizeof(bf16)));
  }

  TPRIMAT_AVX512_BF16 void store(const SumRows& rows) const {
    const int64_t to_up = epilogue_.to_blocks ? width_ * k_panel_lines : width_;
    visit_sums(
        share_, rows, rows.col, TPRIMAT_FINISH_ROW {
          const bf16* const input = epilogue_.swiglu_input + 2 * kept_place(share_, width_, rows.row, rows.col, r);
          __m512i gates = _mm512_loadu_si512(input), ups = _mm512_loadu_si512(input + k_panel_lines);
          for (const int64_t line : {int64_t{0}, k_panel_lines})  // of the same columns, 32 rows on
            __builtin_prefetch(input + 2 * k_panel_lines * width_ + line, 0, 2);
          if (!epilogue_.keeps_slopes) {
            const SwigluLine line(gates, ups);
            gates = line.gate_slope(), ups = line.up_slope();
          }
          bf16* const to = result(rows, r);
          store_line(to, present, scaled_line(gates, low, high), streams_);
          store_line(to + to_up, present, scaled_line(ups, low, high), streams_);
        });
  }
};

// Up to 32 rows of an activation.
struct KeptRows {
  int64_t count, width;
  bool to_blocks;
};
// Computes them again from what their product kept; y: where the first of them begins.
TPRIMAT_AVX512_BF16 inline void swiglu_of_kept(const KeptRows& rows, const bf16* kept, bf16* y) {
  for (int64_t col = 0; col < rows.width; col += k_panel_lines)
    for (int64_t r = 0; r < rows.count; ++r) {
      const bf16* const lines = kept + 2 * place_in_blocks({0, col, r}, rows.count, rows.width);
      const __m512i gate = _mm512_loadu_si512(lines), up = _mm512_loadu_si512(lines + k_panel_lines);
      store_line(y + place_of({0, col, r}, {rows.to_blocks, rows.width}), ~__mmask32{0}, SwigluLine(gate, up).value(),
                 false);
    }
}
TPRIMAT_AVX512_BF16 inline void gelu_of_kept(const KeptRows& rows, const bf16* kept, bf16* y) {
  for (int64_t col = 0; col < rows.width; col += k_panel_lines)
    for (int64_t r = 0; r < rows.count; ++r)
      store_line(y + place_of({0, col, r}, {rows.to_blocks, rows.width}), ~__mmask32{0},
                 GeluLine(_mm512_loadu_si512(kept + place_in_blocks({0, col, r}, rows.count, rows.width))).value(),
                 false);
}

#undef TPRIMAT_FINISH_ROW
}  // namespace tprimat::engine::amx
#endif
