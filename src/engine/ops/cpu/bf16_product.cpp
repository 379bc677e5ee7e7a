#include "ops/cpu/bf16_product.h"

#include <algorithm>
#include <type_traits>

#include "base/check.h"
#include "ops/cpu/amx_product.h"
#include "ops/cpu/amx_tiles.h"
#include "ops/cpu/bf16_panels.h"
#include "ops/cpu/bf16_share.h"

namespace tprimat::engine {
namespace {

constexpr int64_t k_left_block = 96, k_right_block = 192;  // lines of the larger operand that a thread packs at a time

// Elements of a line that are packed at a time. Measured on Zen 5 (1 MB of second-level cache) and, for tiles, on Intel
// Xeons (2 MB): docs/performance.md. Longer sums go by shorter shares, whose sums pass through memory; in
// float they are added in place, by long shares where each pass over a large result costs too much. If rows stay as
// they lie and there are few columns, shares are so short that the rows are read from memory once, or once by each
// thread.
template <class C>
int64_t longest_share(const Bf16Lines& left, int64_t columns) {
  constexpr bool k_is_float = std::is_same_v<C, float>;
  constexpr int64_t k_longest = 2048, k_longest_of_tiles = 3072, k_large_result = 32 << 20;  // elements
  constexpr int64_t k_whole = k_is_float ? 2048 : k_longest_of_tiles, k_shortest = 1024;
  if (!has_amx()) return k_longest;
  if (left.length <= k_whole || (k_is_float && left.count * columns > k_large_result)) return k_longest_of_tiles;
  if (k_is_float) return 512;
  if (left.count < columns || !can_stay_in_rows(left)) return k_longest;
  const int64_t fitting = k_amx_columns_size / columns / amx::k_step * amx::k_step;
  if (fitting >= k_shortest) return std::min(fitting, k_longest);
  return has_own_columns(columns) && columns <= k_amx_longest_block * thread_count() ? k_shortest : k_longest;
}

// The shares of the sum over k: of equal length, in whole vectors but for the last.
template <class C>
int64_t share_length(const Bf16Lines& left, int64_t columns) {
  constexpr int64_t k_vector = 32;
  const int64_t longest = longest_share<C>(left, columns), shares = (left.length + longest - 1) / longest;
  return ((left.length + shares - 1) / shares + k_vector - 1) / k_vector * k_vector;
}

// Rows of the left operand that can be multiplied as they lie.
template <class C>
bool has_plain_rows(const Bf16Share<C>& share) {
  return share.left.step == 1 && share.length % 2 == 0;
}

template <class C>
void multiply_tile(const Bf16Share<C>& share, const LeftTile& rows, const bf16* right_panel, int64_t row, int64_t col) {
  multiply_panels<C>(
      rows, right_panel, pair_count(share.length),
      {std::min(panel_lines(Side::left), share.left.count - row),
       std::min(panel_lines(Side::right), share.right.count - col), share.c + row * share.c_stride + col,
       share.c_stride, share.addend == nullptr ? nullptr : share.addend + row * share.addend_stride + col,
       share.addend_stride});
}

template <class C>
const bf16* pack_side(const Bf16Share<C>& share, Side side) {
  const Bf16Lines& lines = share.lines(side);
  return pack_whole(packed_size(side, lines.count, share.length), [&](bf16* panels, const PackShare& of) {
    pack_panels(side, lines, {0, lines.count, share.begin, share.length}, panels, of);
  });
}

// The tile of rows that starts at `row`; `panels` (nullptr: rows as they lie) starts with that of `first_row`.
template <class C>
LeftTile left_tile(const Bf16Share<C>& share, const bf16* panels, int64_t first_row, int64_t row) {
  constexpr int64_t lines = panel_lines(Side::left);
  if (panels == nullptr)
    return {share.left.data + row * share.left.line_stride + share.begin, share.left.line_stride, 2};
  return {panels + (row - first_row) / lines * panel_size(Side::left, share.length), 2, 2 * lines};
}

// The left operand is the longer one: a thread takes a block of its rows against all columns.
template <class C>
void multiply_by_rows(const Bf16Share<C>& share) {
  constexpr int64_t lines = panel_lines(Side::left), columns = panel_lines(Side::right);
  const bf16* const right = pack_side(share, Side::right);
  const int64_t rows = share.left.count, right_panel = panel_size(Side::right, share.length);
  parallel_each((rows + k_left_block - 1) / k_left_block, [&](int64_t block) {
    const int64_t first = block * k_left_block, end = std::min(first + k_left_block, rows);
    bf16* left = nullptr;
    if (!has_plain_rows(share)) {
      left = own_panels().at_least(packed_size(Side::left, k_left_block, share.length));
      pack_panels(Side::left, share.left, {first, end - first, share.begin, share.length}, left);
    }
    for (int64_t col = 0; col < share.right.count; col += columns)
      for (int64_t row = first; row < end; row += lines)
        multiply_tile(share, left_tile(share, left, first, row), right + col / columns * right_panel, row, col);
  });
}

// The right operand is the longer one: a thread takes a block of its columns against all rows.
template <class C>
void multiply_by_columns(const Bf16Share<C>& share) {
  constexpr int64_t lines = panel_lines(Side::left), columns = panel_lines(Side::right);
  const bf16* const left = has_plain_rows(share) ? nullptr : pack_side(share, Side::left);
  const int64_t cols = share.right.count, right_panel = panel_size(Side::right, share.length);
  parallel_each((cols + k_right_block - 1) / k_right_block, [&](int64_t block) {
    const int64_t first = block * k_right_block, end = std::min(first + k_right_block, cols);
    bf16* const right = own_panels().at_least(packed_size(Side::right, k_right_block, share.length));
    pack_panels(Side::right, share.right, {first, end - first, share.begin, share.length}, right);
    for (int64_t row = 0; row < share.left.count; row += lines)
      for (int64_t col = first; col < end; col += columns)
        multiply_tile(share, left_tile(share, left, 0, row), right + (col - first) / columns * right_panel, row, col);
  });
}

template <class C>
void multiply_share(const Bf16Share<C>& share) {
  if (has_amx())
    multiply_share_by_amx(share);
  else if (share.left.count >= share.right.count)
    multiply_by_rows(share);
  else
    multiply_by_columns(share);
}

template <class T>
bool can_read_blocks(const MatrixView<T>& m) {
  const int64_t row = m.col_stride == 1 ? m.cols : m.rows;
  return has_amx() && m.rows % k_block_side == 0 && m.cols % k_block_side == 0 && m.row_stride * m.col_stride == row;
}

// How the sum over k is divided.
template <class C>
struct Shares {
  Bf16Lines left, right;
  int64_t length, step;

  Shares(const MatrixView<const bf16>& a, const MatrixView<const bf16>& b)
      : left{a.data, a.rows, a.cols, a.row_stride, a.col_stride, a.in_blocks},
        right{b.data, b.cols, b.rows, b.col_stride, b.row_stride, b.in_blocks},
        length(left.length),
        step(share_length<C>(left, b.cols)) {
    CHECK(length > 0);
    CHECK(!a.in_blocks || can_read_blocks(a));
    CHECK(!b.in_blocks || can_read_blocks(b));
  }
};

// Of the shares before the last, where the whole is rounded.
GrowingBuffer<float>& sums_so_far() {
  static GrowingBuffer<float> sums;
  return sums;
}

// finish(share) makes the last share, with what the others gave.
template <class Finish>
void multiply_and_round(const Shares<bf16>& shares, const MatrixView<bf16>& c, const Finish& finish) {
  const int64_t length = shares.length, step = shares.step, cols = shares.right.count;
  float* const so_far = length > step ? sums_so_far().at_least(shares.left.count * cols) : nullptr;
  for (int64_t k = 0; k + step < length; k += step)
    multiply_share<float>({shares.left, shares.right, k, step, so_far, cols, k > 0 ? so_far : nullptr, cols});
  const int64_t last = (length - 1) / step * step;
  finish(Bf16Share<bf16>{shares.left, shares.right, last, length - last, c.data, c.row_stride, so_far, cols});
}

}  // namespace

template <class C>
void multiply_bf16(const MatrixView<const bf16>& a, const MatrixView<const bf16>& b, const MatrixView<C>& c,
                   bool accumulate, double* squares) {
  const Shares<C> shares(a, b);
  if constexpr (std::is_same_v<C, float>) {
    for (int64_t k = 0; k < shares.length; k += shares.step) {
      const float* const addend = accumulate || k > 0 ? c.data : nullptr;
      const bool is_last = k + shares.step >= shares.length;
      multiply_share<float>({shares.left, shares.right, k, std::min(shares.step, shares.length - k), c.data,
                             c.row_stride, addend, c.row_stride, is_last ? squares : nullptr});
    }
  } else {
    CHECK(!accumulate && squares == nullptr);
    multiply_and_round(shares, c, [](const Bf16Share<bf16>& last) { multiply_share(last); });
  }
}

bool is_activation(const Epilogue<bf16>& e) {
  return e.before_gelu != nullptr || e.gelu_input != nullptr || e.swiglu != nullptr || e.swiglu_input != nullptr;
}

bool can_multiply_by_amx(const Epilogue<bf16>& e, int64_t cols) {
  const bool is_gradient = e.gelu_input != nullptr || e.swiglu_input != nullptr;
  CHECK(!is_gradient || e.bias == nullptr);
  if (e.swiglu != nullptr) return cols % (2 * k_activation_multiple) == 0;
  return (e.before_gelu == nullptr && !is_gradient) || cols % k_activation_multiple == 0;
}

void multiply_bf16(const MatrixView<const bf16>& a, const MatrixView<const bf16>& b, const Epilogue<bf16>& epilogue,
                   const MatrixView<bf16>& c) {
  CHECK(has_amx() && can_multiply_by_amx(epilogue, b.cols));
  CHECK(a.cols == b.rows && a.rows == c.rows && c.cols == (epilogue.swiglu_input != nullptr ? 2 : 1) * b.cols);
  CHECK(c.col_stride == 1 && (c.row_stride == c.cols || c.rows == 1));
  CHECK(!epilogue.to_blocks || (is_activation(epilogue) && c.rows % k_block_side == 0));
  multiply_and_round(Shares<bf16>(a, b), c,
                     [&](const Bf16Share<bf16>& last) { multiply_share_by_amx(last, epilogue); });
}

template void multiply_bf16<float>(const MatrixView<const bf16>&, const MatrixView<const bf16>&,
                                   const MatrixView<float>&, bool, double*);
template void multiply_bf16<bf16>(const MatrixView<const bf16>&, const MatrixView<const bf16>&, const MatrixView<bf16>&,
                                  bool, double*);

}  // namespace tprimat::engine
