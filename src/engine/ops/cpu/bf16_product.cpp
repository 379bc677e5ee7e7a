#include "ops/cpu/bf16_product.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "base/check.h"
#include "device/arena.h"
#include "device/parallel.h"
#include "ops/cpu/bf16_panels.h"

namespace tprimat::engine {
namespace {

// Measured on Zen 5 (1 MB of second-level cache): docs/performance.md.
constexpr int64_t k_longest = 2048;                        // elements of a line that are packed at a time
constexpr int64_t k_left_block = 96, k_right_block = 192;  // lines of the larger operand that a thread packs at a time

// Memory that grows to the need of the largest product and lives as long as its thread.
template <class T>
class Buffer {
 public:
  Buffer() { cpu_device(); }  // made first, so it outlives the buffer, whose memory goes back to it
  T* at_least(int64_t count) {
    if (slot_.count < count) {
      arena_.reset();
      ArenaPlan plan;
      slot_ = plan.reserve<T>(Component::workspace, count);
      arena_.emplace(plan);
    }
    return arena_->at(slot_);
  }

 private:
  Slot<T> slot_;
  std::optional<Arena> arena_;
};

Buffer<bf16>& shared_buffer() {
  static Buffer<bf16> buffer;
  return buffer;
}
Buffer<bf16>& own_buffer() {
  thread_local Buffer<bf16> buffer;
  return buffer;
}

// The shares of the sum over k: of equal length, each even but the last.
int64_t share_length(int64_t length) {
  const int64_t shares = (length + k_longest - 1) / k_longest;
  return ((length + shares - 1) / shares + 1) / 2 * 2;
}

// The product over elements [begin, begin + length) of all lines.
template <class C>
struct Share {
  Bf16Lines left, right;
  int64_t begin, length;
  C* c;
  int64_t c_stride;
  const float* addend;
  int64_t addend_stride;

  // Rows that can be multiplied as they lie.
  bool has_plain_rows() const { return left.step == 1 && length % 2 == 0; }
  LeftTile plain_rows(int64_t row) const { return {left.data + row * left.line_stride + begin, left.line_stride, 2}; }

  void multiply_tile(const LeftTile& rows, const bf16* right_panel, int64_t row, int64_t col) const {
    multiply_panels<C>(rows, right_panel, pair_count(length),
                       {std::min(panel_lines(Side::left), left.count - row),
                        std::min(panel_lines(Side::right), right.count - col), c + row * c_stride + col, c_stride,
                        addend == nullptr ? nullptr : addend + row * addend_stride + col, addend_stride});
  }
};

// All panels of a side, packed by all threads together.
template <class C>
const bf16* pack_whole(const Share<C>& share, Side side) {
  const Bf16Lines& lines = side == Side::left ? share.left : share.right;
  bf16* const panels = shared_buffer().at_least(packed_size(side, lines.count, share.length));
  const int64_t parts = k_pieces_per_thread * thread_count();
  parallel_each(parts, [&](int64_t part) {
    pack_panels(side, lines, {0, lines.count, share.begin, share.length}, panels, {part, parts});
  });
  return panels;
}

// The tile of rows that starts at `row`; `panels` (nullptr: rows as they lie) starts with that of `first_row`.
template <class C>
LeftTile left_tile(const Share<C>& share, const bf16* panels, int64_t first_row, int64_t row) {
  constexpr int64_t lines = panel_lines(Side::left);
  if (panels == nullptr) return share.plain_rows(row);
  return {panels + (row - first_row) / lines * panel_size(Side::left, share.length), 2, 2 * lines};
}

// The left operand is the longer one: a thread takes a block of its rows against all columns.
template <class C>
void multiply_by_rows(const Share<C>& share) {
  constexpr int64_t lines = panel_lines(Side::left), columns = panel_lines(Side::right);
  const bf16* const right = pack_whole(share, Side::right);
  const int64_t rows = share.left.count, right_panel = panel_size(Side::right, share.length);
  parallel_each((rows + k_left_block - 1) / k_left_block, [&](int64_t block) {
    const int64_t first = block * k_left_block, end = std::min(first + k_left_block, rows);
    bf16* left = nullptr;
    if (!share.has_plain_rows()) {
      left = own_buffer().at_least(packed_size(Side::left, k_left_block, share.length));
      pack_panels(Side::left, share.left, {first, end - first, share.begin, share.length}, left);
    }
    for (int64_t col = 0; col < share.right.count; col += columns)
      for (int64_t row = first; row < end; row += lines)
        share.multiply_tile(left_tile(share, left, first, row), right + col / columns * right_panel, row, col);
  });
}

// The right operand is the longer one: a thread takes a block of its columns against all rows.
template <class C>
void multiply_by_columns(const Share<C>& share) {
  constexpr int64_t lines = panel_lines(Side::left), columns = panel_lines(Side::right);
  const bf16* const left = share.has_plain_rows() ? nullptr : pack_whole(share, Side::left);
  const int64_t cols = share.right.count, right_panel = panel_size(Side::right, share.length);
  parallel_each((cols + k_right_block - 1) / k_right_block, [&](int64_t block) {
    const int64_t first = block * k_right_block, end = std::min(first + k_right_block, cols);
    bf16* const right = own_buffer().at_least(packed_size(Side::right, k_right_block, share.length));
    pack_panels(Side::right, share.right, {first, end - first, share.begin, share.length}, right);
    for (int64_t row = 0; row < share.left.count; row += lines)
      for (int64_t col = first; col < end; col += columns)
        share.multiply_tile(left_tile(share, left, 0, row), right + (col - first) / columns * right_panel, row, col);
  });
}

template <class C>
void multiply_share(const Share<C>& share) {
  if (share.left.count >= share.right.count)
    multiply_by_rows(share);
  else
    multiply_by_columns(share);
}

}  // namespace

template <class C>
void multiply_bf16(const MatrixView<const bf16>& a, const MatrixView<const bf16>& b, const MatrixView<C>& c,
                   bool accumulate) {
  const Bf16Lines left{a.data, a.rows, a.cols, a.row_stride, a.col_stride},
      right{b.data, b.cols, b.rows, b.col_stride, b.row_stride};
  const int64_t length = left.length, step = share_length(std::max<int64_t>(length, 1));
  if constexpr (std::is_same_v<C, float>) {
    for (int64_t k = 0; k == 0 || k < length; k += step) {
      const float* const addend = accumulate || k > 0 ? c.data : nullptr;
      multiply_share<float>({left, right, k, std::min(step, length - k), c.data, c.row_stride, addend, c.row_stride});
    }
  } else {
    CHECK(!accumulate);
    static Buffer<float> sums;  // of the shares before the last
    float* const so_far = length > step ? sums.at_least(c.rows * c.cols) : nullptr;
    for (int64_t k = 0; k + step < length; k += step)
      multiply_share<float>({left, right, k, step, so_far, c.cols, k > 0 ? so_far : nullptr, c.cols});
    const int64_t last = std::max<int64_t>((length + step - 1) / step - 1, 0) * step;
    multiply_share<bf16>({left, right, last, length - last, c.data, c.row_stride, so_far, c.cols});
  }
}

template void multiply_bf16<float>(const MatrixView<const bf16>&, const MatrixView<const bf16>&,
                                   const MatrixView<float>&, bool);
template void multiply_bf16<bf16>(const MatrixView<const bf16>&, const MatrixView<const bf16>&, const MatrixView<bf16>&,
                                  bool);

}  // namespace tprimat::engine
