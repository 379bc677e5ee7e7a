#include "ops/cpu/amx_product.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "ops/cpu/amx_instructions.h"
#include "ops/cpu/amx_sums.h"
#include "ops/cpu/amx_tiles.h"

#if TPRIMAT_HAS_AVX512_BF16

namespace tprimat::engine {
namespace {

using amx::k_panel_lines;
// Measured on Intel Xeons with 48 KB of first-level and 2 MB of second-level cache (docs/performance.md).
constexpr int64_t k_block_size = 1024 * k_amx_longest_block;  // elements
// Steps of a panel that the first-level cache holds beside what streams by.
constexpr int64_t k_part_steps = 16;
constexpr int64_t k_block_sums = k_panel_lines * k_panel_lines;  // of 32 rows and 32 columns

// Two at least, and an even number: a block never separates a gate's panel from its up's.
int64_t whole_panels(int64_t lines) {
  constexpr int64_t k_pair = 2 * k_panel_lines;
  return std::max(lines / k_pair, int64_t{1}) * k_pair;
}

// Blocks of about equal size: as many for each thread, and `fewest` at least, if there are lines enough.
int64_t block_lines(int64_t lines, int64_t length, int64_t fewest) {
  const int64_t longest = whole_panels(std::min(k_block_size / length, k_amx_longest_block)), threads = thread_count();
  const int64_t rounds = std::max((lines + longest * threads - 1) / (longest * threads), fewest);
  return whole_panels((lines + rounds * threads - 1) / (rounds * threads) + 2 * k_panel_lines - 1);
}

template <class C>
bool can_stay_in_rows(const Bf16Share<C>& share) {
  return engine::can_stay_in_rows(share.left) && share.length % amx::k_step == 0;
}

// Panels of one side, of consecutive lines from `line` on.
struct Panels {
  int64_t line, count;
  const bf16* packed;  // nullptr: rows as they lie
  const bf16* packed_at(int64_t at, int64_t length) const {
    return packed + (at - line) / k_panel_lines * amx::panel_size(length);
  }
};

// Brings a panel to the second-level cache while `blocks` others are multiplied, some lines with each step.
class PanelFetch {
 public:
  PanelFetch(const amx::LeftPanel& panel, bool is_contiguous, int64_t steps, int64_t blocks)
      : run_(reinterpret_cast<const char*>(panel.first)),
        lines_of_run_(is_contiguous ? k_panel_lines * steps : steps),
        to_next_run_(panel.row_bytes),
        some_((k_panel_lines + blocks - 1) / blocks) {}
  void fetch_some() {
    for (int64_t i = 0; i < some_; ++i) {
      asm volatile("prefetcht1 (%0)" ::"r"(run_ + line_ * k_line_bytes));
      if (++line_ == lines_of_run_) run_ += to_next_run_, line_ = 0;
    }
  }

 private:
  static constexpr int64_t k_line_bytes = 64;
  const char* run_;  // of lines that lie side by side
  int64_t lines_of_run_, to_next_run_, some_, line_ = 0;
};

// 32 rows and 32 columns over some steps, and what comes to the second-level cache meanwhile.
struct PanelPair {
  amx::LeftPanel rows, columns;
  int64_t steps;
  PanelFetch& next;
};
// Where the sums of a block's earlier steps are, and where its sums go if later steps follow. nullptr: there are none.
struct Carried {
  const float* before;
  float* after;
};

// Blocks of 32×32 sums one after the other. The sums of one stay in the registers until the next has begun, and go to
// their place while it goes on. Panels of the `Streaming` side come out of the second-level cache each time.
template <class Sums, Side Streaming>
class BlockPipeline {
 public:
  explicit BlockPipeline(const Sums& to) : to_(to) {}

  // Of the block at (row, col).
  void multiply(const PanelPair& panels, int64_t row, int64_t col, const Carried& carried) {
    load_step(panels.rows, panels.columns);
    change_sums<0>(carried.before), amx::add_product<0, 4, 6>();
    change_sums<1>(carried.before), amx::add_product<1, 4, 7>();
    change_sums<2>(carried.before), amx::add_product<2, 5, 6>();
    change_sums<3>(carried.before), amx::add_product<3, 5, 7>();
    panels.next.fetch_some();
    if (to_take_ == sums_) start_storing();
    to_take_ = carried.after == nullptr ? sums_ : carried.after, row_ = row, col_ = col;
    const int64_t steps = panels.steps, rows = steps > 1 ? (k_panel_lines + steps - 2) / (steps - 1) : k_panel_lines;
    amx::LeftPanel left = panels.rows, right = panels.columns;
    for (int64_t step = 1; step < steps; ++step) {
      left.first += left.to_next, right.first += right.to_next;
      load_step(left, right);
      panels.next.fetch_some();
      amx::add_step();
      store_some(rows);
    }
    store_some(k_panel_lines);
  }
  // Returns Σ of the squares of what was stored, or 0 where it is not asked for.
  double finish() {
    if (to_take_ != nullptr) {
      take_sums<0>(), take_sums<1>(), take_sums<2>(), take_sums<3>();
      start_storing();
      store_some(k_panel_lines);
    }
    if constexpr (requires { to_.finish(); }) to_.finish();
    _mm_sfence();  // what was stored past the caches comes before what follows on other threads
    if constexpr (requires { to_.squares(); })
      return to_.squares();
    else
      return 0;
  }

 private:
  static void load_step(const amx::LeftPanel& rows, const amx::LeftPanel& columns) {
    amx::load_step<Streaming == Side::left, Streaming == Side::right>(rows, columns);
  }
  static constexpr int64_t k_row = k_panel_lines * static_cast<int64_t>(sizeof(float));
  template <int Tile>
  static constexpr int64_t k_place = Tile / 2 * amx::k_tile_lines * k_panel_lines + Tile % 2 * amx::k_tile_lines;
  template <int Tile>
  void take_sums() {
    amx::store_tile<Tile>(to_take_ + k_place<Tile>, k_row);
  }
  // The tile unit does not wait for the sums of the block before, which are stored between the products.
  template <int Tile>
  void change_sums(const float* before) {
    if (to_take_ != nullptr) take_sums<Tile>();
    if (before != nullptr)
      amx::load_tile<Tile>(before + k_place<Tile>, k_row);
    else
      amx::clear_tile<Tile>();
  }
  void start_storing() { done_row_ = row_, done_col_ = col_, stored_ = 0; }
  // Further rows of the block that is done.
  void store_some(int64_t rows) {
    if (stored_ < k_panel_lines) to_.store({sums_, done_row_, done_col_, stored_, stored_ + rows});
    stored_ += rows;
  }

  Sums to_;
  alignas(64) float sums_[k_block_sums];
  float* to_take_ = nullptr;                                      // where the sums in the registers go
  int64_t row_ = 0, col_ = 0;                                     // their block
  int64_t done_row_ = 0, done_col_ = 0, stored_ = k_panel_lines;  // that of sums_, and how many of its rows are stored
};

// The whole product of a share, whose sums go where a `Sums` (amx_sums.h) puts them.
template <class C, class Sums>
class Product {
 public:
  Product(const Bf16Share<C>& share, const Sums& sums) : share_(share), sums_(sums) {}

  void multiply() const {
    const auto is_plain = [&](Side side) { return side == Side::left && can_stay_in_rows(share_); };
    const bool by_rows = goes_by_rows();
    const Side own = by_rows ? Side::left : Side::right, shared = by_rows ? Side::right : Side::left;
    const Panels whole{0, share_.lines(shared).count, is_plain(shared) ? nullptr : pack_all(shared)};
    // Each block of columns passes all rows, which come from memory then unless the caches hold them: one block for
    // each thread, in two pieces, so that one may go to a thread that is free.
    const bool has_halves = !by_rows && whole.packed == nullptr;
    const int64_t pieces = has_halves ? 2 : 1, fewest = has_halves ? 1 : 2, all = share_.lines(own).count;
    const int64_t lines = block_lines(all, share_.length, fewest), product = ++products;
    std::vector<double> squares(static_cast<size_t>((all + lines - 1) / lines * pieces));
    parallel_each(std::ssize(squares), [&](int64_t index) {
      const int64_t first = index / pieces * lines, count = std::min(lines, all - first);
      const Panels block{first, count, is_plain(own) ? nullptr : pack_block(own, {product, first, count})};
      double& of_piece = squares[static_cast<size_t>(index)];
      if (!by_rows)
        of_piece = multiply_panels<Side::right>(piece_of(whole, {index % pieces, pieces}), block);
      else if (rows_pass_once())
        of_piece = multiply_panels<Side::right>(block, whole);
      else if (amx::adds_in_place(share_))
        of_piece = multiply_by_columns(block, whole);  // a result that is read is visited row by row
      else
        of_piece = multiply_panels<Side::left>(block, whole);
    });
    if (share_.squares != nullptr) *share_.squares = std::accumulate(squares.begin(), squares.end(), 0.0);
  }

 private:
  // Whether a thread's blocks are of rows: never where the columns of a row come by turns or outnumber the rows;
  // otherwise if the rows pass once, or unless each thread packs only its own columns: where rows stay as they lie and
  // there are columns enough.
  bool goes_by_rows() const {
    const bool packs_only_own = can_stay_in_rows(share_) && has_own_columns(share_.right.count);
    return !Sums::k_by_turns && share_.left.count >= share_.right.count && (rows_pass_once() || !packs_only_own);
  }
  // Whether rows that stay as they lie meet all columns, which the second-level cache holds, one panel after the other:
  // the next one comes from memory meanwhile, and comes once.
  bool rows_pass_once() const {
    return can_stay_in_rows(share_) && share_.right.count * share_.length <= k_amx_columns_size;
  }
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
  struct Block {
    int64_t product, line, lines;
  };
  // Unless this thread packed it just before.
  const bf16* pack_block(Side side, const Block& block) const {
    thread_local int64_t product = 0, line = 0;
    bf16* const panels = own_panels().at_least(amx::panel_count(block.lines) * amx::panel_size(share_.length));
    if (product != block.product || line != block.line) pack(side, block.line, block.lines, panels);
    product = block.product, line = block.line;
    return panels;
  }
  // One of equal pieces of rows as they lie, in whole panels.
  static Panels piece_of(const Panels& rows, const PackShare& piece) {
    if (piece.of == 1) return rows;
    const int64_t count = amx::panel_count(rows.count), first = piece.first(count) * k_panel_lines;
    return {first, std::min(piece.end(count) * k_panel_lines, rows.count) - first, nullptr};
  }

  // As many columns at a time as the second-level cache holds beside a panel of rows.
  double multiply_by_columns(const Panels& rows, const Panels& columns) const {
    double squares = 0;
    const int64_t some = whole_panels(k_amx_columns_size / share_.length);
    for (int64_t col = 0; col < columns.count; col += some)
      squares += multiply_panels<Side::right>(
          rows, {col, std::min(some, columns.count - col), columns.packed_at(col, share_.length)});
    return squares;
  }
  // A block, which the second-level cache holds, and the other side's panels one after the other, each in parts that
  // the first-level cache holds beside what streams by.
  template <Side Streaming>
  double multiply_panels(const Panels& rows, const Panels& columns) const {
    const Panels &block = Streaming == Side::left ? rows : columns, &others = Streaming == Side::left ? columns : rows;
    const TileRegisters registers;
    BlockPipeline<Sums, Streaming> pipeline(sums_);
    const int64_t steps = amx::step_count(share_.length), parts = (steps + k_part_steps - 1) / k_part_steps;
    const int64_t count = amx::panel_count(block.count), end = others.line + others.count;
    float* const carried = parts > 1 ? own_sums().at_least(count * k_block_sums) : nullptr;
    for (int64_t line = others.line; line < end; line += k_panel_lines) {
      const int64_t after = line + k_panel_lines < end ? line + k_panel_lines : others.line;
      PanelFetch next(panel_at(others, after), is_contiguous(others), steps, count);
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t first = steps * part / parts, steps_of_part = steps * (part + 1) / parts - first;
        multiply_part(
            pipeline, rows, columns,
            {line, first, steps_of_part, part > 0 ? carried : nullptr, part + 1 < parts ? carried : nullptr, next});
      }
    }
    return pipeline.finish();
  }
  // Some steps of the panel at `line` and all of a block. The sums of the block before and after them, panel by panel.
  struct PanelPart {
    int64_t line, first, steps;
    const float* before;
    float* after;
    PanelFetch& next;
  };
  template <Side Streaming>
  void multiply_part(BlockPipeline<Sums, Streaming>& pipeline, const Panels& rows, const Panels& columns,
                     const PanelPart& part) const {
    const Panels& block = Streaming == Side::left ? rows : columns;
    for (int64_t i = 0; i < amx::panel_count(block.count); ++i) {
      const int64_t at = block.line + i * k_panel_lines, sums = i * k_block_sums;
      const int64_t row = Streaming == Side::left ? at : part.line, col = Streaming == Side::left ? part.line : at;
      pipeline.multiply(
          {part_of(rows, row, part.first), part_of(columns, col, part.first), part.steps, part.next}, row, col,
          {part.before == nullptr ? nullptr : part.before + sums, part.after == nullptr ? nullptr : part.after + sums});
    }
  }
  // Whether each panel lies in one piece.
  bool is_contiguous(const Panels& side) const { return side.packed != nullptr || share_.left.in_blocks; }
  amx::LeftPanel part_of(const Panels& side, int64_t line, int64_t step) const {
    amx::LeftPanel panel = panel_at(side, line);
    panel.first += step * panel.to_next;
    return panel;
  }
  amx::LeftPanel panel_at(const Panels& side, int64_t line) const {
    const Bf16Lines& left = share_.left;
    if (side.packed == nullptr && left.in_blocks)
      return amx::packed_left(left.data + line * left.line_stride + share_.begin * k_panel_lines);
    if (side.packed == nullptr)
      return amx::plain_left(left.data + line * left.line_stride + share_.begin, left.line_stride);
    return amx::packed_left(side.packed_at(line, share_.length));
  }

  static inline int64_t products = 0;  // so far, one at a time
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

void activate_kept_by_amx(bool is_gated, const bf16* kept, const MatrixView<bf16>& y) {
  parallel_each(amx::panel_count(y.rows), [&](int64_t panel) {
    const int64_t row = panel * k_panel_lines, at = row * y.cols;
    const amx::KeptRows of{std::min(k_panel_lines, y.rows - row), y.cols, y.in_blocks};
    if (is_gated)
      amx::swiglu_of_kept(of, kept + 2 * at, y.data + at);
    else
      amx::gelu_of_kept(of, kept + at, y.data + at);
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
void activate_kept_by_amx(bool, const bf16*, const MatrixView<bf16>&) { CHECK(false); }
}  // namespace tprimat::engine
#endif

namespace tprimat::engine {
template void multiply_share_by_amx<float>(const Bf16Share<float>&);
template void multiply_share_by_amx<bf16>(const Bf16Share<bf16>&);
}  // namespace tprimat::engine
