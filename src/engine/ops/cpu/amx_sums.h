#pragma once

#include <algorithm>
#include <numeric>
#include <type_traits>

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

TPRIMAT_INLINE_AVX512_BF16 inline __m512i narrow_both(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}
TPRIMAT_INLINE_AVX512_BF16 inline __m512 widen_low(__m512i values) { return widen(_mm512_castsi512_si256(values)); }
TPRIMAT_INLINE_AVX512_BF16 inline __m512 widen_high(__m512i values) {
  return widen(_mm512_extracti64x4_epi64(values, 1));
}

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

// s = 1/(1 + e^−z) and 1 − s, which loses nothing where s is close to 1, with a relative error of 7e-5, a thirtieth of
// bf16's: 2^x = 2^⌊x⌋·p(x − ⌊x⌋), and p of degree 4 interpolates 2^r at Chebyshev's nodes in [0, 1].
struct SigmoidParts {
  TPRIMAT_INLINE_AVX512_BF16 explicit SigmoidParts(__m512 z) {
    constexpr int k_above_floor = 0x09;
    const __m512 x = _mm512_min_ps(_mm512_set1_ps(126.0f), _mm512_mul_ps(z, _mm512_set1_ps(-k_log2_e)));
    const __m512 r = _mm512_reduce_ps(x, k_above_floor);
    __m512 power = _mm512_set1_ps(1.3670309e-2f);
    for (const float coefficient : {5.1744998e-2f, 0.24160436f, 0.69297292f, 1.0000035f})
      power = _mm512_fmadd_ps(power, r, _mm512_set1_ps(coefficient));
    power = _mm512_scalef_ps(power, x);
    value = _mm512_rcp14_ps(_mm512_add_ps(power, _mm512_set1_ps(1.0f)));
    rest = _mm512_mul_ps(power, value);
  }
  __m512 value, rest;
};

TPRIMAT_INLINE_AVX512_BF16 inline __m512 silu(__m512 z) { return _mm512_mul_ps(z, SigmoidParts(z).value); }
// gelu(z) = z·s(2u), 2u = 2√(2/π)·(z + 0.044715·z³); s is the sigmoid.
TPRIMAT_INLINE_AVX512_BF16 inline __m512 gelu(__m512 z) {
  const __m512 inner = _mm512_fmadd_ps(_mm512_mul_ps(z, z), _mm512_set1_ps(0.044715f), _mm512_set1_ps(1.0f));
  return _mm512_mul_ps(z, SigmoidParts(_mm512_mul_ps(_mm512_mul_ps(z, _mm512_set1_ps(1.5957691216f)), inner)).value);
}
// Of 32 numbers.
TPRIMAT_INLINE_AVX512_BF16 inline __m512i swiglu_line(__m512i gate, __m512i up) {
  return narrow_both(_mm512_mul_ps(silu(widen_low(gate)), widen_low(up)),
                     _mm512_mul_ps(silu(widen_high(gate)), widen_high(up)));
}
TPRIMAT_INLINE_AVX512_BF16 inline __m512i gelu_line(__m512i z) {
  return narrow_both(gelu(widen_low(z)), gelu(widen_high(z)));
}

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

// before_gelu = sums + bias, c = gelu(before_gelu).
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
          store_line(epilogue_.before_gelu + kept_place(share_, width_, rows.row, rows.col, r), present, before, true);
          store_line(result(rows, r), present, gelu_line(before), streams_);
        });
  }
};

// c = sums ⊙ gelu'(gelu_input).
class GeluGradientSums : public ActivationSums {
 public:
  static constexpr bool k_by_turns = false;
  GeluGradientSums(const Bf16Share<bf16>& share, const Epilogue<bf16>& epilogue)
      : ActivationSums(share, epilogue, share.right.count) {}

  TPRIMAT_AVX512_BF16 void store(const SumRows& rows) const {
    visit_sums(
        share_, rows, rows.col, TPRIMAT_FINISH_ROW {
          const __m512i z =
              _mm512_loadu_si512(epilogue_.gelu_input + kept_place(share_, width_, rows.row, rows.col, r));
          store_line(result(rows, r), present,
                     narrow_both(_mm512_mul_ps(low, slope(widen_low(z))), _mm512_mul_ps(high, slope(widen_high(z)))),
                     streams_);
        });
  }

 private:
  // d gelu/dz = s + z·s·(1 − s)·2u', 2u' = 2√(2/π)·(1 + 3·0.044715·z²)
  TPRIMAT_INLINE_AVX512_BF16 static __m512 slope(__m512 z) {
    const __m512 root = _mm512_set1_ps(1.5957691216f), square = _mm512_mul_ps(z, z);
    const __m512 inner = _mm512_fmadd_ps(square, _mm512_set1_ps(0.044715f), _mm512_set1_ps(1.0f));
    const SigmoidParts s(_mm512_mul_ps(_mm512_mul_ps(z, root), inner));
    const __m512 twice_u = _mm512_fmadd_ps(square, _mm512_set1_ps(3 * 0.044715f * 1.5957691216f), root);
    return _mm512_mul_ps(s.value, _mm512_fmadd_ps(_mm512_mul_ps(z, s.rest), twice_u, _mm512_set1_ps(1.0f)));
  }
};

// c = [gate, up] = sums + bias, swiglu = silu(gate)·up. The columns of the sums pass by in turns. The upper rows of a
// gate and its up are multiplied while the up is stored, the lower ones while the next gate is: the tile unit has as
// much work beside it in every block whose sums are stored.
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

  // Some rows of a gate or an up to c, whose columns begin at `half` and whose lines lie at `line`, and to `kept`.
  TPRIMAT_INLINE_AVX512_BF16 void keep(const SumRows& rows, int64_t half, int64_t line, bf16* kept) const {
    const int64_t col = inner_column(rows.col);
    const Bias bias(epilogue_.bias, half + col, ~__mmask32{0});
    visit_sums(
        share_, rows, half + col, TPRIMAT_FINISH_ROW {
          const __m512i sums = bias.add(low, high);
          store_line(share_.c + 2 * kept_place(share_, width_, rows.row, col, r) + line, present, sums, true);
          _mm512_store_si512(kept + r * k_panel_lines, sums);
        });
  }
  TPRIMAT_INLINE_AVX512_BF16 void multiply(int64_t first, int64_t end) const {
    for (int64_t r = first; r < std::min(end, pair_.rows); ++r) {
      const __m512i gate = _mm512_load_si512(gates_[turn_] + r * k_panel_lines),
                    up = _mm512_load_si512(ups_ + r * k_panel_lines);
      store_line(epilogue_.swiglu + place({pair_.row, pair_.col, r}, width_), ~__mmask32{0}, swiglu_line(gate, up),
                 streams_);
    }
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

// c = [dgate, dup], the gradients of what swiglu_input is, where the sums are that of silu(gate)·up.
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
          const __m512i gate = _mm512_loadu_si512(input), up = _mm512_loadu_si512(input + k_panel_lines);
          for (const int64_t line : {int64_t{0}, k_panel_lines})  // of the same columns, 32 rows on
            __builtin_prefetch(input + 2 * k_panel_lines * width_ + line, 0, 2);
          const Gradients first(widen_low(gate), widen_low(up), low), second(widen_high(gate), widen_high(up), high);
          bf16* const to = result(rows, r);
          store_line(to, present, narrow_both(first.gate, second.gate), streams_);
          store_line(to + to_up, present, narrow_both(first.up, second.up), streams_);
        });
  }

 private:
  struct Gradients {
    TPRIMAT_INLINE_AVX512_BF16 Gradients(__m512 z, __m512 factor, __m512 gradient) {
      const SigmoidParts s(z);
      const __m512 slope = _mm512_fmadd_ps(z, s.rest, _mm512_set1_ps(1.0f));
      gate = _mm512_mul_ps(_mm512_mul_ps(gradient, factor), _mm512_mul_ps(s.value, slope));
      up = _mm512_mul_ps(gradient, _mm512_mul_ps(z, s.value));
    }
    __m512 gate, up;
  };
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
      store_line(y + place_of({0, col, r}, {rows.to_blocks, rows.width}), ~__mmask32{0}, swiglu_line(gate, up), false);
    }
}
TPRIMAT_AVX512_BF16 inline void gelu_of_kept(const KeptRows& rows, const bf16* kept, bf16* y) {
  for (int64_t col = 0; col < rows.width; col += k_panel_lines)
    for (int64_t r = 0; r < rows.count; ++r)
      store_line(y + place_of({0, col, r}, {rows.to_blocks, rows.width}), ~__mmask32{0},
                 gelu_line(_mm512_loadu_si512(kept + place_in_blocks({0, col, r}, rows.count, rows.width))), false);
}

#undef TPRIMAT_FINISH_ROW
}  // namespace tprimat::engine::amx
#endif
