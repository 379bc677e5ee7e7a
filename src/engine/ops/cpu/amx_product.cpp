#include "ops/cpu/amx_product.h"

#include <algorithm>
#include <type_traits>

#include "base/check.h"
#include "ops/cpu/amx_instructions.h"
#include "ops/cpu/amx_tiles.h"
#include "ops/cpu/transpose16.h"

#if TPRIMAT_HAS_AVX512_BF16

namespace tprimat::engine {
namespace {

using amx::k_panel_lines;
// Measured on Intel Xeons with 48 KB of first-level and 2 MB of second-level cache (docs/performance.md).
// A block, which a thread packs at a time: elements and lines.
constexpr int64_t k_block_size = 512 * 1024, k_longest_block = 512;
// Elements of the columns that pass by one panel of rows after the other.
constexpr int64_t k_columns_size = 384 * 1024;
// A block's rows of the result are written 32 columns at a time if they span no more bytes, or have few columns.
constexpr int64_t k_result_bytes = 1024 * 1024, k_few_columns = 2 * k_panel_lines;

int64_t whole_panels(int64_t lines) { return std::max(lines / k_panel_lines, int64_t{2}) * k_panel_lines; }

// Blocks of about equal size: as many for each thread, and two at least, if there are lines enough.
int64_t block_lines(int64_t lines, int64_t length) {
  const int64_t longest = whole_panels(std::min(k_block_size / length, k_longest_block)), threads = thread_count();
  const int64_t rounds = std::max((lines + longest * threads - 1) / (longest * threads), int64_t{2});
  return whole_panels((lines + rounds * threads - 1) / (rounds * threads) + k_panel_lines - 1);
}

// Some rows of 32×32 sums to their place in c, where the block starts at (row, col).
struct SumRows {
  int64_t first, end;
};
template <class C>
TPRIMAT_AVX512_BF16 void store_sums(const Bf16Share<C>& share, const float* block, int64_t row, int64_t col,
                                    const SumRows& some) {
  const int64_t end = std::min({some.end, k_panel_lines, share.left.count - row});
  const __mmask32 present = first_lanes(share.right.count - col);
  const auto low = static_cast<__mmask16>(present), high = static_cast<__mmask16>(present >> 16);
  for (int64_t r = some.first; r < end; ++r) {
    const float* const sums = block + r * k_panel_lines;
    __m512 first = _mm512_loadu_ps(sums), second = _mm512_loadu_ps(sums + 16);
    if (share.addend != nullptr) {
      const float* const addend = share.addend + (row + r) * share.addend_stride + col;
      first = _mm512_add_ps(first, _mm512_maskz_loadu_ps(low, addend));
      second = _mm512_add_ps(second, _mm512_maskz_loadu_ps(high, addend + 16));
    }
    C* const to = share.c + (row + r) * share.c_stride + col;
    if constexpr (std::is_same_v<C, float>) {
      _mm512_mask_storeu_ps(to, low, first);
      _mm512_mask_storeu_ps(to + 16, high, second);
    } else {
      _mm512_mask_storeu_epi16(to, present, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first)));
    }
  }
}

// The rows of the result lie far apart; they arrive while the products are made.
template <class C>
void prefetch_sums(const Bf16Share<C>& share, int64_t row, int64_t col) {
  const int64_t rows = std::min(k_panel_lines, share.left.count - row);
  for (int64_t r = row; r < row + rows; ++r) {
    for (size_t byte = 0; byte < k_panel_lines * sizeof(C); byte += 64)
      __builtin_prefetch(reinterpret_cast<const char*>(share.c + r * share.c_stride + col) + byte, 1);
    if (share.addend == nullptr || static_cast<const void*>(share.addend) == share.c) continue;
    __builtin_prefetch(share.addend + r * share.addend_stride + col);
    __builtin_prefetch(share.addend + r * share.addend_stride + col + 16);
  }
}

// Rows that are multiplied as they lie: tiles of them are whole, those of an aligned matrix straddle no cache lines,
// and they do not share a few sets of the first-level cache, as rows 1 KB apart do.
template <class C>
bool can_stay_in_rows(const Bf16Share<C>& share) {
  constexpr int64_t k_line = 64 / sizeof(bf16), k_alike = 1024 / static_cast<int64_t>(sizeof(bf16));
  const int64_t stride = share.left.line_stride;
  return share.left.step == 1 && stride % k_line == 0 && stride % k_alike != 0 &&
         share.left.count % k_panel_lines == 0 && share.length % amx::k_step == 0;
}

// Panels of one side, of consecutive lines from `line` on.
struct Panels {
  Side side;
  int64_t line, count;
  const bf16* packed;  // nullptr: rows as they lie
  const bf16* packed_at(int64_t at, int64_t length) const {
    return packed + (at - line) / k_panel_lines * amx::panel_size(length);
  }
};

// One panel of each side. Many panels of one side pass by, out of the second-level cache, while one panel of the other
// is reused; where that is larger than the first-level cache, both stream.
struct PanelPair {
  amx::LeftPanel left, right;
  int64_t steps;
  Side passing;
  const bf16* next;  // the panel that passes by after this one

  // What is loaded two steps after `step`.
  amx::LeftPanel later(int64_t step) const {
    constexpr int64_t k_ahead = 2;
    amx::LeftPanel panel = passing == Side::left ? left : right;
    const int64_t at = step + k_ahead;
    panel.first =
        at < steps ? panel.first + at * panel.to_next : next + std::min(at - steps, steps - 1) * panel.to_next;
    return panel;
  }
};

// Blocks of 32×32 sums one after the other. The sums of one stay in the registers until the next has begun, and go to
// their place while it goes on.
template <class C>
class BlockPipeline {
 public:
  explicit BlockPipeline(const Bf16Share<C>& share) : share_(share) {}

  // Of the block at (row, col).
  void multiply(const PanelPair& panels, int64_t row, int64_t col) {
    add_first_step(panels);
    const int64_t steps = panels.steps, rows = steps > 1 ? (k_panel_lines + steps - 2) / (steps - 1) : k_panel_lines;
    amx::LeftPanel left = panels.left, right = panels.right;
    for (int64_t step = 1; step < steps; ++step) {
      left.first += left.to_next, right.first += right.to_next;
      amx::add_step(left, right, panels.later(step));
      store_some(rows);
    }
    store_some(k_panel_lines);
    row_ = row, col_ = col, stored_ = 0;
  }
  void finish() {
    if (stored_ == k_panel_lines) return;
    take_sums<0>(), take_sums<1>(), take_sums<2>(), take_sums<3>();
    store_some(k_panel_lines);
  }

 private:
  // The tile unit does not wait for the sums of the block before, which are stored between the products.
  void add_first_step(const PanelPair& panels) {
    amx::load_step(panels.left, panels.right);
    const amx::LeftPanel later = panels.later(0);
    change_sums<0>(), amx::add_product<0, 4, 6>(), amx::prefetch_lines<0>(later);
    change_sums<1>(), amx::add_product<1, 4, 7>(), amx::prefetch_lines<1>(later);
    change_sums<2>(), amx::add_product<2, 5, 6>(), amx::prefetch_lines<2>(later);
    change_sums<3>(), amx::add_product<3, 5, 7>(), amx::prefetch_lines<3>(later);
  }
  template <int Tile>
  void take_sums() {
    constexpr int64_t k_row = k_panel_lines * static_cast<int64_t>(sizeof(float));
    amx::store_tile<Tile>(sums_ + Tile / 2 * amx::k_tile_lines * k_panel_lines + Tile % 2 * amx::k_tile_lines, k_row);
  }
  template <int Tile>
  void change_sums() {
    if (stored_ < k_panel_lines) take_sums<Tile>();
    amx::clear_tile<Tile>();
  }
  // Further rows of the block before.
  void store_some(int64_t rows) {
    if (stored_ < k_panel_lines) store_sums(share_, sums_, row_, col_, {stored_, stored_ + rows});
    stored_ += rows;
  }

  const Bf16Share<C>& share_;
  alignas(64) float sums_[k_panel_lines * k_panel_lines];
  int64_t row_ = 0, col_ = 0, stored_ = k_panel_lines;  // of the block before
};

// Lines of both sides, panel by panel: all of `passing` for each panel of `staying`.
template <class C>
void multiply_panels(const Bf16Share<C>& share, const Panels& staying, const Panels& passing) {
  const TileRegisters registers;
  BlockPipeline<C> pipeline(share);
  const auto panel_at = [&](const Panels& side, int64_t line) {
    if (side.packed == nullptr)
      return amx::plain_left(share.left.data + line * share.left.line_stride + share.begin, share.left.line_stride);
    return amx::packed_left(side.packed_at(line, share.length));
  };
  for (int64_t stay = staying.line; stay < staying.line + staying.count; stay += k_panel_lines)
    for (int64_t pass = passing.line; pass < passing.line + passing.count; pass += k_panel_lines) {
      const int64_t after = pass + k_panel_lines < passing.line + passing.count ? pass + k_panel_lines : passing.line;
      const bool rows_pass = passing.side == Side::left;
      const int64_t row = rows_pass ? pass : stay, col = rows_pass ? stay : pass;
      prefetch_sums(share, row, col);
      const amx::LeftPanel one = panel_at(passing, pass), other = panel_at(staying, stay);
      pipeline.multiply({rows_pass ? one : other, rows_pass ? other : one, amx::step_count(share.length), passing.side,
                         panel_at(passing, after).first},
                        row, col);
    }
  pipeline.finish();
}

template <class C>
const bf16* pack_all(const Bf16Share<C>& share, Side side) {
  const Bf16Lines& lines = share.lines(side);
  return pack_whole(share, side, amx::panel_count(lines.count) * amx::panel_size(share.length),
                    [&](const Bf16Part& part, bf16* panels, const PackShare& of) {
                      amx::pack_panels(side, lines, part, panels, of);
                    });
}

template <class C>
const bf16* pack_block(const Bf16Share<C>& share, Side side, int64_t line, int64_t lines) {
  bf16* const panels = own_panels().at_least(amx::panel_count(lines) * amx::panel_size(share.length));
  amx::pack_panels(side, share.lines(side), {line, lines, share.begin, share.length}, panels);
  return panels;
}

// Rows of the result that lie far apart are written a few cache lines at a time: a block of columns passes by each
// panel of rows.
template <class C>
void multiply_rows(const Bf16Share<C>& share, const Panels& rows, const Panels& columns) {
  const int64_t result = rows.count * share.c_stride * static_cast<int64_t>(sizeof(C));
  if (result <= k_result_bytes || columns.count <= k_few_columns) return multiply_panels(share, columns, rows);
  const int64_t some = whole_panels(k_columns_size / share.length);
  for (int64_t col = 0; col < columns.count; col += some)
    multiply_panels(share, rows,
                    {Side::right, col, std::min(some, columns.count - col), columns.packed_at(col, share.length)});
}

template <class C>
void multiply_blocks(const Bf16Share<C>& share) {
  const bool by_rows = share.left.count >= share.right.count;
  const Side own = by_rows ? Side::left : Side::right, shared = by_rows ? Side::right : Side::left;
  const auto is_plain = [&](Side side) { return side == Side::left && can_stay_in_rows(share); };
  const Panels whole{shared, 0, share.lines(shared).count, is_plain(shared) ? nullptr : pack_all(share, shared)};
  const int64_t all = share.lines(own).count, lines = block_lines(all, share.length);
  parallel_each((all + lines - 1) / lines, [&](int64_t index) {
    const int64_t first = index * lines, count = std::min(lines, all - first);
    const Panels block{own, first, count, is_plain(own) ? nullptr : pack_block(share, own, first, count)};
    if (by_rows)
      multiply_rows(share, block, whole);
    else
      multiply_panels(share, whole, block);
  });
}

}  // namespace

template <class C>
void multiply_share_by_amx(const Bf16Share<C>& share) {
  multiply_blocks(share);
}

}  // namespace tprimat::engine

#else

namespace tprimat::engine {
template <class C>
void multiply_share_by_amx(const Bf16Share<C>&) {
  CHECK(false);
}
}  // namespace tprimat::engine
#endif

namespace tprimat::engine {
template void multiply_share_by_amx<float>(const Bf16Share<float>&);
template void multiply_share_by_amx<bf16>(const Bf16Share<bf16>&);
}  // namespace tprimat::engine
