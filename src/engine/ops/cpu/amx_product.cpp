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
constexpr int64_t k_sums = k_panel_lines * k_panel_lines;
// Measured on an Intel Xeon with 48 KB of first-level and 2 MB of second-level cache (the steps: docs/performance.md).
constexpr int64_t k_block_size = 512 * 1024;  // elements of a block
constexpr int64_t k_longest_block = 512;      // lines
constexpr int64_t k_steps_at_a_time = 64;     // of a panel, before the next panel of the block takes its turn

int64_t block_lines(int64_t lines, int64_t length) {
  const int64_t fitting = k_block_size / std::max<int64_t>(length, 1), fair = lines / (2 * thread_count());
  return std::clamp(std::min(fitting, fair) / k_panel_lines * k_panel_lines, 2 * k_panel_lines, k_longest_block);
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

// Rows that are multiplied as they lie: tiles of them are whole, and the lines of a tile do not share a few sets of the
// first-level cache, as those 1 KB apart do.
template <class C>
bool can_stay_in_rows(const Bf16Share<C>& share) {
  constexpr int64_t k_alike = 1024 / static_cast<int64_t>(sizeof(bf16));
  return share.left.step == 1 && share.left.line_stride % k_alike != 0 && share.left.count % k_panel_lines == 0 &&
         share.length % amx::k_step == 0;
}

// Panels of one side, of consecutive lines from `line` on.
struct Panels {
  Side side;
  int64_t line;
  const bf16* packed;  // nullptr: rows as they lie
};

// Some steps of one panel of each side. Many panels of one side pass by, out of the second-level cache, while one panel
// of the other is reused; where that is larger than the first-level cache, both stream.
struct PanelPair {
  amx::LeftPanel left, right;
  int64_t steps;
  Side passing;
  const bf16* next;  // where the passing side goes on after these steps

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

constexpr int64_t k_sums_row = k_panel_lines * static_cast<int64_t>(sizeof(float));
// Where a tile of 32×32 sums starts.
template <int Tile>
constexpr int64_t k_tile_at = Tile / 2 * amx::k_tile_lines * k_panel_lines + Tile % 2 * amx::k_tile_lines;

// The sums of the block before leave their register, and those of this one take their place: zero, or what there is so
// far.
template <int Tile>
inline void change_sums(float* before, const float* so_far) {
  if (before != nullptr) amx::store_tile<Tile>(before + k_tile_at<Tile>, k_sums_row);
  if (so_far != nullptr)
    amx::load_tile<Tile>(so_far + k_tile_at<Tile>, k_sums_row);
  else
    amx::clear_tile<Tile>();
}

// The first step, between whose products the sums of the block before are stored: the tile unit does not wait for them.
inline void add_first_step(const PanelPair& panels, float* before, const float* so_far) {
  amx::load_step(panels.left, panels.right);
  const amx::LeftPanel later = panels.later(0);
  change_sums<0>(before, so_far);
  amx::add_product<0, 4, 6>(), amx::prefetch_lines<0>(later);
  change_sums<1>(before, so_far);
  amx::add_product<1, 4, 7>(), amx::prefetch_lines<1>(later);
  change_sums<2>(before, so_far);
  amx::add_product<2, 5, 6>(), amx::prefetch_lines<2>(later);
  change_sums<3>(before, so_far);
  amx::add_product<3, 5, 7>(), amx::prefetch_lines<3>(later);
}

// Blocks of 32×32 sums one after the other. The sums of one stay in the registers until the next has begun, and go to
// their place while it goes on.
template <class C>
class BlockPipeline {
 public:
  explicit BlockPipeline(const Bf16Share<C>& share) : share_(share) {}

  // `sums`: memory of this block alone. is_whole: then they are complete, and belong at (row, col).
  struct Block {
    float* sums = nullptr;
    int64_t row = 0, col = 0;
    bool is_whole = false;
  };
  void multiply(const PanelPair& panels, const Block& block, bool accumulate) {
    add_first_step(panels, before_.sums, accumulate ? block.sums : nullptr);
    const int64_t steps = panels.steps, rows = steps > 1 ? (k_panel_lines + steps - 2) / (steps - 1) : k_panel_lines;
    int64_t stored = before_.is_whole ? 0 : k_panel_lines;
    amx::LeftPanel left = panels.left, right = panels.right;
    for (int64_t step = 1; step < steps; ++step) {
      left.first += left.to_next, right.first += right.to_next;
      amx::add_step(left, right, panels.later(step));
      if (stored < k_panel_lines) store_sums(share_, before_.sums, before_.row, before_.col, {stored, stored + rows});
      stored += rows;
    }
    if (stored < k_panel_lines) store_sums(share_, before_.sums, before_.row, before_.col, {stored, k_panel_lines});
    before_ = block;
  }
  void finish() {
    if (before_.sums == nullptr) return;
    amx::store_tile<0>(before_.sums + k_tile_at<0>, k_sums_row),
        amx::store_tile<1>(before_.sums + k_tile_at<1>, k_sums_row);
    amx::store_tile<2>(before_.sums + k_tile_at<2>, k_sums_row),
        amx::store_tile<3>(before_.sums + k_tile_at<3>, k_sums_row);
    if (before_.is_whole) store_sums(share_, before_.sums, before_.row, before_.col, {0, k_panel_lines});
    before_ = {};
  }

 private:
  const Bf16Share<C>& share_;
  Block before_;
};

// Where a panel of each side starts, and from which step on.
struct Place {
  int64_t row, col, step;
};
// One panel of each side.
template <class C>
struct PanelProduct {
  const Bf16Share<C>& share;
  const Panels &left, &right;
  Side passing;
  BlockPipeline<C>& pipeline;

  int64_t panel_at(const Panels& side, int64_t line) const {
    return (line - side.line) / k_panel_lines * amx::panel_size(share.length);
  }
  amx::LeftPanel left_at(int64_t row, int64_t step) const {
    if (left.packed != nullptr) return amx::packed_left(left.packed + panel_at(left, row) + step * amx::k_step_size);
    return amx::plain_left(share.left.data + row * share.left.line_stride + share.begin + step * amx::k_step,
                           share.left.line_stride);
  }
  amx::LeftPanel right_at(int64_t col, int64_t step) const {
    return amx::packed_left(right.packed + panel_at(right, col) + step * amx::k_step_size);
  }
  amx::LeftPanel at(const Place& place) const {
    return passing == Side::left ? left_at(place.row, place.step) : right_at(place.col, place.step);
  }
  // `count` steps from `place` on; the passing side goes on at `next`.
  void multiply(const Place& place, int64_t count, const Place& next, float* sums) const {
    const bool is_last = place.step + count >= amx::step_count(share.length);
    if (is_last) prefetch_sums(share, place.row, place.col);
    pipeline.multiply({left_at(place.row, place.step), right_at(place.col, place.step), count, passing, at(next).first},
                      {sums, place.row, place.col, is_last}, place.step > 0);
  }
};

// A block of one side by all lines of the other, panel by panel.
template <class C>
void multiply_block(const Bf16Share<C>& share, const Panels& block, int64_t block_lines, const Panels& other) {
  thread_local GrowingBuffer<float> buffer;
  float* const sums = buffer.at_least(amx::panel_count(block_lines) * k_sums);
  const TileRegisters registers;
  const bool by_rows = block.side == Side::left;
  BlockPipeline<C> pipeline(share);
  const PanelProduct<C> product{share, by_rows ? block : other, by_rows ? other : block, block.side, pipeline};
  const int64_t steps = amx::step_count(share.length);
  const auto place = [&](int64_t at, int64_t theirs, int64_t step) {
    const int64_t mine = block.line + at;
    return Place{by_rows ? mine : theirs, by_rows ? theirs : mine, step};
  };
  for (int64_t theirs = 0; theirs < share.lines(other.side).count; theirs += k_panel_lines)
    for (int64_t step = 0; step == 0 || step < steps; step += k_steps_at_a_time) {
      const int64_t count = std::min(k_steps_at_a_time, steps - step), after = step + count < steps ? step + count : 0;
      for (int64_t at = 0; at < block_lines; at += k_panel_lines)
        product.multiply(
            place(at, theirs, step), count,
            at + k_panel_lines < block_lines ? place(at + k_panel_lines, theirs, step) : place(0, theirs, after),
            sums + at / k_panel_lines * k_sums);
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

template <class C>
void multiply_blocks(const Bf16Share<C>& share) {
  const bool by_rows = share.left.count >= share.right.count;
  const Side own = by_rows ? Side::left : Side::right, shared = by_rows ? Side::right : Side::left;
  const auto is_plain = [&](Side side) { return side == Side::left && can_stay_in_rows(share); };
  const Panels other{shared, 0, is_plain(shared) ? nullptr : pack_all(share, shared)};
  const int64_t all = share.lines(own).count, lines = block_lines(all, share.length);
  parallel_each((all + lines - 1) / lines, [&](int64_t index) {
    const int64_t first = index * lines, count = std::min(lines, all - first);
    multiply_block(share, {own, first, is_plain(own) ? nullptr : pack_block(share, own, first, count)}, count, other);
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
