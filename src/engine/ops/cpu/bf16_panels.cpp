#include "ops/cpu/bf16_panels.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "ops/cpu/instruction_sets.h"
#include "ops/cpu/transpose16.h"

#if TPRIMAT_HAS_AVX512_BF16

namespace tprimat::engine {
namespace {

constexpr int64_t k_group = 16;  // lines of which one register holds a pair each

int64_t group_count(int64_t lines) { return (lines + k_group - 1) / k_group; }

// Lines that the group has, of its 16.
int64_t lines_in_group(const Bf16Lines& from, const Bf16Part& part, int64_t group) {
  return std::clamp<int64_t>(std::min(part.count, from.count - part.line) - group * k_group, 0, k_group);
}

// Where one pair of each of a group's 16 lines goes: into two left panels, a third of a right one, or the whole panel.
struct LeftPanels {
  bf16* panels;
  int64_t pairs;
  TPRIMAT_AVX512_BF16 void store(int64_t group, int64_t pair, __m512i values) const {
    constexpr int64_t k_row = 2 * panel_lines(Side::left);
    bf16* const first = panels + (2 * group * pairs + pair) * k_row;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(first), _mm512_castsi512_si256(values));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(first + pairs * k_row), _mm512_extracti64x4_epi64(values, 1));
  }
};
struct RightPanels {
  bf16* panels;
  int64_t pairs;
  TPRIMAT_AVX512_BF16 void store(int64_t group, int64_t pair, __m512i values) const {
    constexpr int64_t k_groups = panel_lines(Side::right) / k_group;
    const int64_t row = (group / k_groups * pairs + pair) * k_groups + group % k_groups;
    _mm512_storeu_si512(panels + row * 2 * k_group, values);
  }
};
struct WholePanel {
  bf16* panel;
  int64_t groups;
  TPRIMAT_AVX512_BF16 void store(int64_t group, int64_t pair, __m512i values) const {
    _mm512_storeu_si512(panel + (pair * groups + group) * 2 * k_group, values);
  }
};

// A line's elements lie side by side: 16 pairs of 16 lines at a time.
template <class To>
TPRIMAT_AVX512_BF16 void pack_along_lines(const Bf16Lines& from, const Bf16Part& part, int64_t group, const To& to) {
  const int64_t pairs = pair_count(part.length), lines = lines_in_group(from, part, group);
  const bf16* const first = from.data + (part.line + group * k_group) * from.line_stride + part.begin;
  for (int64_t pair = 0; pair < pairs; pair += 16) {
    const __mmask32 present = first_lanes(part.length - 2 * pair);
    __m512i block[16];
    for (int64_t i = 0; i < 16; ++i)
      block[i] = i < lines ? _mm512_maskz_loadu_epi16(present, first + i * from.line_stride + 2 * pair)
                           : _mm512_setzero_si512();
    transpose(block);
    for (int64_t i = 0; i < std::min<int64_t>(16, pairs - pair); ++i) to.store(group, pair + i, block[i]);
  }
}

// One pair of elements of each of a group's lines, where the same element of all lines lies side by side; nothing past
// the last.
TPRIMAT_AVX512_BF16 inline __m512i pairs_across(const Bf16Lines& from, const Bf16Part& part, int64_t group,
                                                int64_t pair) {
  const auto present = static_cast<__mmask16>(first_lanes(lines_in_group(from, part, group)));
  const bf16* const even = from.data + (part.begin + 2 * pair) * from.step + part.line + group * k_group;
  __m512i both = _mm512_setzero_si512();
  if (2 * pair < part.length) both = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(present, even));
  if (2 * pair + 1 < part.length) {
    const __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(present, even + from.step));
    both = _mm512_or_si512(both, _mm512_slli_epi32(high, 16));
  }
  return both;
}

// The same element of all lines lies side by side: the pairs of that share of all groups, so that memory is read in
// long runs.
template <class To>
TPRIMAT_AVX512_BF16 void pack_across_lines(const Bf16Lines& from, const Bf16Part& part, const PackShare& share,
                                           const To& to) {
  constexpr int64_t k_ahead = 16;  // elements; the processor does not foresee strides of many pages
  const int64_t groups = group_count(part.count);
  const int64_t pairs = pair_count(part.length);
  for (int64_t pair = share.first(pairs); pair < share.end(pairs); ++pair) {
    const bf16* const even = from.data + (part.begin + 2 * pair) * from.step + part.line;
    const bf16* const odd = 2 * pair + 1 < part.length ? even + from.step : nullptr;
    const bool has_ahead = 2 * pair + 1 + k_ahead < part.length;
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t at = group * k_group;
      if (has_ahead && group % 2 == 0) {
        _mm_prefetch(even + k_ahead * from.step + at, _MM_HINT_T0);
        _mm_prefetch(odd + k_ahead * from.step + at, _MM_HINT_T0);
      }
      to.store(group, pair, pairs_across(from, part, group, pair));
    }
  }
}

template <class To>
void pack(const Bf16Lines& from, const Bf16Part& part, const To& to, const PackShare& share) {
  if (from.step != 1) return pack_across_lines(from, part, share, to);
  const int64_t groups = group_count(part.count);
  for (int64_t group = share.first(groups); group < share.end(groups); ++group) pack_along_lines(from, part, group, to);
}

constexpr int k_vectors = panel_lines(Side::right) / 16;

template <int Rows, class C>
TPRIMAT_INLINE_AVX512_BF16 inline void prefetch_tile(const Bf16Tile<C>& tile) {
  for (int r = 0; r < Rows; ++r) {
    for (size_t byte = 0; byte < panel_lines(Side::right) * sizeof(C); byte += 64)
      __builtin_prefetch(reinterpret_cast<const char*>(tile.c + r * tile.c_stride) + byte, 1);
    if (tile.addend == nullptr || static_cast<const void*>(tile.addend) == tile.c) continue;
    for (int v = 0; v < k_vectors; ++v) __builtin_prefetch(tile.addend + r * tile.addend_stride + 16 * v);
  }
}

template <int Rows, class C>
TPRIMAT_AVX512_BF16 inline void store_tile(const Bf16Tile<C>& tile, const __m512 (&sum)[Rows][k_vectors]) {
  for (int v = 0; v < k_vectors; ++v) {
    const auto present = static_cast<__mmask16>(first_lanes(std::min<int64_t>(tile.cols - 16 * v, 16)));
    for (int r = 0; r < Rows; ++r) {
      __m512 value = sum[r][v];
      if (tile.addend != nullptr)
        value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(present, tile.addend + r * tile.addend_stride + 16 * v));
      C* const to = tile.c + r * tile.c_stride + 16 * v;
      if constexpr (std::is_same_v<C, float>)
        _mm512_mask_storeu_ps(to, present, value);
      else
        _mm256_mask_storeu_epi16(to, present, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value)));
    }
  }
}

template <int Rows, class C>
TPRIMAT_AVX512_BF16 void multiply_rows(const LeftTile& rows, const bf16* right, int64_t pairs,
                                       const Bf16Tile<C>& tile) {
  __m512 sum[Rows][k_vectors];
  for (auto& row : sum)
    for (__m512& value : row) value = _mm512_setzero_ps();
  prefetch_tile<Rows>(tile);  // the tile's rows lie far apart; they arrive while the products are made
  const bf16* left = rows.data;
  const int64_t line = rows.line, step = rows.pair;
  for (int64_t k = 0; k < pairs; ++k, left += step, right += 2 * panel_lines(Side::right)) {
    __m512bh columns[k_vectors];
    for (int v = 0; v < k_vectors; ++v) columns[v] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(right + 32 * v));
    for (int r = 0; r < Rows; ++r) {
      int pair = 0;
      __builtin_memcpy(&pair, left + r * line, sizeof pair);
      const auto row = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
      for (int v = 0; v < k_vectors; ++v) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], row, columns[v]);
    }
  }
  store_tile<Rows>(tile, sum);
}

// Rows×Vectors of a small product stay in registers over all pairs.
template <int Rows, int Vectors>
TPRIMAT_AVX512_BF16 inline void multiply_small_block(const SmallProduct& p, int64_t row, int64_t col, bool accumulate) {
  __m512 sum[Rows][Vectors];
  float* const c = p.c + row * p.cols + col;
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v)
      sum[r][v] = accumulate ? _mm512_loadu_ps(c + r * p.cols + 16 * v) : _mm512_setzero_ps();
  const bf16 *left = p.left + row * p.left_stride, *right = p.right + 2 * col;
  for (int64_t k = 0; k < p.pairs; ++k, left += 2, right += 2 * p.cols) {
    __m512bh columns[Vectors];
    for (int v = 0; v < Vectors; ++v) columns[v] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(right + 32 * v));
    for (int r = 0; r < Rows; ++r) {
      int pair = 0;
      __builtin_memcpy(&pair, left + r * p.left_stride, sizeof pair);
      const auto numbers = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
      for (int v = 0; v < Vectors; ++v) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], numbers, columns[v]);
    }
  }
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v) _mm512_storeu_ps(c + r * p.cols + 16 * v, sum[r][v]);
}

template <int Vectors>
TPRIMAT_AVX512_BF16 void multiply_small_columns(const SmallProduct& p, int64_t col, bool accumulate) {
  int64_t row = 0;
  for (; row + 6 <= p.rows; row += 6) multiply_small_block<6, Vectors>(p, row, col, accumulate);
  if (row + 4 <= p.rows) multiply_small_block<4, Vectors>(p, row, col, accumulate), row += 4;
  for (; row < p.rows; ++row) multiply_small_block<1, Vectors>(p, row, col, accumulate);
}

}  // namespace

void multiply_small(const SmallProduct& product, bool accumulate) {
  int64_t col = 0;
  for (; col + 64 <= product.cols; col += 64) multiply_small_columns<4>(product, col, accumulate);
  for (; col < product.cols; col += 16) multiply_small_columns<1>(product, col, accumulate);
}

bool has_bf16_pairs() {
  static const bool has = may_use_avx512_bf16() && __builtin_cpu_supports("avx512bf16") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq");
  return has;
}

void pack_panels(Side side, const Bf16Lines& from, const Bf16Part& part, bf16* panels, const PackShare& share) {
  const int64_t pairs = pair_count(part.length);
  if (side == Side::left) return pack(from, part, LeftPanels{panels, pairs}, share);
  pack(from, part, RightPanels{panels, pairs}, share);
}

void pack_whole_panel(const Bf16Lines& from, int64_t panel_lines, bf16* panel) {
  pack(from, {0, panel_lines, 0, from.length}, WholePanel{panel, group_count(panel_lines)}, {});
}

TPRIMAT_AVX512_BF16 void pack_rows(const Bf16Lines& from, int64_t lines, int64_t row_length, bf16* rows) {
  CHECK(from.line_stride == 1 && lines % k_group == 0 && row_length % 32 == 0);
  for (int64_t pair = 0; 2 * pair < row_length; pair += 16)
    for (int64_t group = 0; group < group_count(lines); ++group) {
      __m512i block[16];
      for (int64_t i = 0; i < 16; ++i) block[i] = pairs_across(from, {0, lines, 0, from.length}, group, pair + i);
      transpose(block);
      for (int64_t i = 0; i < 16; ++i)
        _mm512_storeu_si512(rows + (group * k_group + i) * row_length + 2 * pair, block[i]);
    }
}

template <class C>
void multiply_panels(const LeftTile& left, const bf16* right, int64_t pairs, const Bf16Tile<C>& tile) {
  using Kernel = void (*)(const LeftTile&, const bf16*, int64_t, const Bf16Tile<C>&);
  static constexpr std::array<Kernel, panel_lines(Side::left)> k_kernels{
      multiply_rows<1, C>, multiply_rows<2, C>, multiply_rows<3, C>, multiply_rows<4, C>,
      multiply_rows<5, C>, multiply_rows<6, C>, multiply_rows<7, C>, multiply_rows<8, C>};
  k_kernels[static_cast<size_t>(tile.rows - 1)](left, right, pairs, tile);
}

}  // namespace tprimat::engine

#else  // another CPU: has_bf16_pairs() says so, and nobody asks for the rest

namespace tprimat::engine {
bool has_bf16_pairs() { return false; }
void pack_panels(Side, const Bf16Lines&, const Bf16Part&, bf16*, const PackShare&) { CHECK(false); }
template <class C>
void multiply_panels(const LeftTile&, const bf16*, int64_t, const Bf16Tile<C>&) {
  CHECK(false);
}
void pack_whole_panel(const Bf16Lines&, int64_t, bf16*) { CHECK(false); }
void pack_rows(const Bf16Lines&, int64_t, int64_t, bf16*) { CHECK(false); }
void multiply_small(const SmallProduct&, bool) { CHECK(false); }
}  // namespace tprimat::engine
#endif

namespace tprimat::engine {
int64_t packed_size(Side side, int64_t lines, int64_t length) {
  const int64_t step = std::max<int64_t>(panel_lines(side), 16);
  return (lines + step - 1) / step * step * pair_count(length) * 2;
}
template void multiply_panels<float>(const LeftTile&, const bf16*, int64_t, const Bf16Tile<float>&);
template void multiply_panels<bf16>(const LeftTile&, const bf16*, int64_t, const Bf16Tile<bf16>&);
}  // namespace tprimat::engine
