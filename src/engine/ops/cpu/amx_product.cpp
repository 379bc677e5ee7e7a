#include "ops/cpu/amx_product.h"

#include <algorithm>

#include "base/check.h"
#include "ops/cpu/amx_instructions.h"
#include "ops/cpu/amx_sums.h"
#include "ops/cpu/amx_tiles.h"

#if TPRIMAT_HAS_AVX512_BF16

namespace tprimat::engine {
namespace {

using amx::k_panel_lines;
// Measured on Intel Xeons with 48 KB of first-level and 2 MB of second-level cache (docs/performance.md).
// A block, which a thread packs at a time: elements and lines.
constexpr int64_t k_block_size = 512 * 1024, k_longest_block = 512;
// Elements of the columns that pass by one panel of rows after the other.
constexpr int64_t k_columns_size = 384 * 1024;

// Two at least, and an even number: a block never separates a gate's panel from its up's.
int64_t whole_panels(int64_t lines) {
  constexpr int64_t k_pair = 2 * k_panel_lines;
  return std::max(lines / k_pair, int64_t{1}) * k_pair;
}

// Blocks of about equal size: as many for each thread, and two at least, if there are lines enough.
int64_t block_lines(int64_t lines, int64_t length) {
  const int64_t longest = whole_panels(std::min(k_block_size / length, k_longest_block)), threads = thread_count();
  const int64_t rounds = std::max((lines + longest * threads - 1) / (longest * threads), int64_t{2});
  return whole_panels((lines + rounds * threads - 1) / (rounds * threads) + 2 * k_panel_lines - 1);
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
  int64_t line, count;
  const bf16* packed;  // nullptr: rows as they lie
  const bf16* packed_at(int64_t at, int64_t length) const {
    return packed + (at - line) / k_panel_lines * amx::panel_size(length);
  }
};

// 32 rows and 32 columns. The columns pass by, out of the second-level cache, while the rows are reused; where those
// are larger than the first-level cache, both stream.
struct PanelPair {
  amx::LeftPanel rows, columns;
  int64_t steps;
  const bf16* next;  // the columns after these

  // The columns that are loaded two steps after `step`.
  amx::LeftPanel later(int64_t step) const {
    constexpr int64_t k_ahead = 2;
    amx::LeftPanel panel = columns;
    const int64_t at = step + k_ahead;
    panel.first =
        at < steps ? panel.first + at * panel.to_next : next + std::min(at - steps, steps - 1) * panel.to_next;
    return panel;
  }
};

// Blocks of 32×32 sums one after the other. The sums of one stay in the registers until the next has begun, and go to
// their place while it goes on.
template <class Sums>
class BlockPipeline {
 public:
  explicit BlockPipeline(const Sums& to) : to_(to) {}

  // Of the block at (row, col).
  void multiply(const PanelPair& panels, int64_t row, int64_t col) {
    to_.prefetch(row, col);
    add_first_step(panels);
    const int64_t steps = panels.steps, rows = steps > 1 ? (k_panel_lines + steps - 2) / (steps - 1) : k_panel_lines;
    amx::LeftPanel left = panels.rows, right = panels.columns;
    for (int64_t step = 1; step < steps; ++step) {
      left.first += left.to_next, right.first += right.to_next;
      amx::add_step(left, right, panels.later(step));
      store_some(rows);
    }
    store_some(k_panel_lines);
    row_ = row, col_ = col, stored_ = 0;
  }
  void finish() {
    if (stored_ < k_panel_lines) {
      take_sums<0>(), take_sums<1>(), take_sums<2>(), take_sums<3>();
      store_some(k_panel_lines);
    }
    if constexpr (requires { to_.finish(); }) to_.finish();
    _mm_sfence();  // what was stored past the caches comes before what follows on other threads
  }

 private:
  // The tile unit does not wait for the sums of the block before, which are stored between the products.
  void add_first_step(const PanelPair& panels) {
    amx::load_step(panels.rows, panels.columns);
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
    if (stored_ < k_panel_lines) to_.store({sums_, row_, col_, stored_, stored_ + rows});
    stored_ += rows;
  }

  Sums to_;
  alignas(64) float sums_[k_panel_lines * k_panel_lines];
  int64_t row_ = 0, col_ = 0, stored_ = k_panel_lines;  // of the block before
};

// The whole product of a share, whose sums go where a `Sums` (amx_sums.h) puts them.
template <class C, class Sums>
class Product {
 public:
  Product(const Bf16Share<C>& share, const Sums& sums) : share_(share), sums_(sums) {}

  void multiply() const {
    const bool by_rows = share_.left.count >= share_.right.count;
    const Side own = by_rows ? Side::left : Side::right, shared = by_rows ? Side::right : Side::left;
    const auto is_plain = [&](Side side) { return side == Side::left && can_stay_in_rows(share_); };
    const Panels whole{0, share_.lines(shared).count, is_plain(shared) ? nullptr : pack_all(shared)};
    const int64_t all = share_.lines(own).count, lines = block_lines(all, share_.length);
    parallel_each((all + lines - 1) / lines, [&](int64_t index) {
      const int64_t first = index * lines, count = std::min(lines, all - first);
      const Panels block{first, count, is_plain(own) ? nullptr : pack_block(own, first, count)};
      if (by_rows)
        multiply_in_parts(block, whole);
      else
        multiply_panels(whole, block);
    });
  }

 private:
  // `lines` of a side from `line` on, which starts a panel; where columns come by turns, each panel from its half.
  void pack(Side side, int64_t line, int64_t lines, bf16* panels, const PackShare& of = {}) const {
    if (!Sums::k_by_turns || side == Side::left)
      return amx::pack_panels(side, share_.lines(side), {line, lines, share_.begin, share_.length}, panels, of);
    const int64_t half = share_.right.count / 2, count = amx::panel_count(lines);
    for (int64_t panel = of.first(count); panel < of.end(count); ++panel) {
      const int64_t place = line / k_panel_lines + panel, from = place % 2 * half + place / 2 * k_panel_lines;
      amx::pack_panels(side, share_.right, {from, k_panel_lines, share_.begin, share_.length},
                       panels + panel * amx::panel_size(share_.length));
    }
  }
  const bf16* pack_all(Side side) const {
    const int64_t lines = share_.lines(side).count;
    return pack_whole(amx::panel_count(lines) * amx::panel_size(share_.length),
                      [&](bf16* panels, const PackShare& of) { pack(side, 0, lines, panels, of); });
  }
  const bf16* pack_block(Side side, int64_t line, int64_t lines) const {
    bf16* const panels = own_panels().at_least(amx::panel_count(lines) * amx::panel_size(share_.length));
    pack(side, line, lines, panels);
    return panels;
  }

  // As many columns at a time as the second-level cache holds beside the rows.
  void multiply_in_parts(const Panels& rows, const Panels& columns) const {
    const int64_t some = whole_panels(k_columns_size / share_.length);
    for (int64_t col = 0; col < columns.count; col += some)
      multiply_panels(rows, {col, std::min(some, columns.count - col), columns.packed_at(col, share_.length)});
  }

  // All columns for each panel of rows: their part of the result is written line after line.
  void multiply_panels(const Panels& rows, const Panels& columns) const {
    const TileRegisters registers;
    BlockPipeline<Sums> pipeline(sums_);
    const int64_t end = columns.line + columns.count;
    for (int64_t row = rows.line; row < rows.line + rows.count; row += k_panel_lines)
      for (int64_t col = columns.line; col < end; col += k_panel_lines) {
        const int64_t after = col + k_panel_lines < end ? col + k_panel_lines : columns.line;
        pipeline.multiply({panel_at(rows, row), panel_at(columns, col), amx::step_count(share_.length),
                           panel_at(columns, after).first},
                          row, col);
      }
    pipeline.finish();
  }
  amx::LeftPanel panel_at(const Panels& side, int64_t line) const {
    if (side.packed == nullptr)
      return amx::plain_left(share_.left.data + line * share_.left.line_stride + share_.begin, share_.left.line_stride);
    return amx::packed_left(side.packed_at(line, share_.length));
  }

  const Bf16Share<C>& share_;
  const Sums& sums_;
};

}  // namespace

template <class C>
void multiply_share_by_amx(const Bf16Share<C>& share) {
  Product(share, amx::PlainSums(share)).multiply();
}

void multiply_share_by_amx(const Bf16Share<bf16>& share, const Epilogue<bf16>& epilogue) {
  const auto multiply = [&](const auto& sums) { Product(share, sums).multiply(); };
  if (epilogue.swiglu != nullptr) return multiply(amx::SwigluSums(share, epilogue));
  if (epilogue.swiglu_input != nullptr) return multiply(amx::SwigluGradientSums(share, epilogue));
  if (epilogue.before_gelu != nullptr) return multiply(amx::GeluSums(share, epilogue));
  if (epilogue.gelu_input != nullptr) return multiply(amx::GeluGradientSums(share, epilogue));
  multiply(amx::PlainSums(share, epilogue.bias));
}

void activate_kept_by_amx(bool is_gated, const KeptShape& of, const bf16* kept, bf16* y) {
  parallel_each(amx::panel_count(of.rows), [&](int64_t panel) {
    const int64_t row = panel * k_panel_lines, rows = std::min(k_panel_lines, of.rows - row), at = row * of.width;
    if (is_gated)
      amx::swiglu_of_kept(kept + 2 * at, rows, of.width, y + at);
    else
      amx::gelu_of_kept(kept + at, rows, of.width, y + at);
  });
}

}  // namespace tprimat::engine

#else

namespace tprimat::engine {
template <class C>
void multiply_share_by_amx(const Bf16Share<C>&) {
  CHECK(false);
}
void multiply_share_by_amx(const Bf16Share<bf16>&, const Epilogue<bf16>&) { CHECK(false); }
void activate_kept_by_amx(bool, const KeptShape&, const bf16*, bf16*) { CHECK(false); }
}  // namespace tprimat::engine
#endif

namespace tprimat::engine {
template void multiply_share_by_amx<float>(const Bf16Share<float>&);
template void multiply_share_by_amx<bf16>(const Bf16Share<bf16>&);
}  // namespace tprimat::engine
