#pragma once

#include "device/parallel.h"
#include "ops/cpu/amx_tiles.h"
#include "ops/cpu/bf16_share.h"
#include "ops/matmul.h"

namespace tprimat::engine {

// Whether rows are multiplied as they lie, if a share of them is whole steps. Rows in blocks are: they are the panels
// that packing would make. Other rows have to fill whole panels and straddle no cache lines, and not be a multiple of
// 2 KB apart: such rows share a few sets of the first-level cache, which then could not hold them.
inline bool can_stay_in_rows(const Bf16Lines& left) {
  constexpr int64_t k_line = 64 / sizeof(bf16), k_alike = 2048 / static_cast<int64_t>(sizeof(bf16));
  if (left.in_blocks) return left.step == 1;
  return left.step == 1 && left.line_stride % k_line == 0 && left.line_stride % k_alike != 0 &&
         left.count % amx::k_panel_lines == 0;
}
// Whether there are columns enough for each thread to have blocks of its own.
inline bool has_own_columns(int64_t columns) {
  constexpr int64_t k_enough = 256;
  return columns >= k_enough * thread_count();
}
// Lines of a block, which a thread has in its second-level cache at a time: up to this many, of 1024 elements.
inline constexpr int64_t k_amx_longest_block = 512;
// Elements of the columns that stay in the second-level cache while rows pass by.
inline constexpr int64_t k_amx_columns_size = 384 * 1024;

// The product of a share on a CPU with has_amx(), by all threads: of one operand, each thread packs a block that fits
// its second-level cache; the other one is packed once for all. Rows that can stay as they lie are not packed.
template <class C>
void multiply_share_by_amx(const Bf16Share<C>& share);
// The same, and what the epilogue does to the sums.
void multiply_share_by_amx(const Bf16Share<bf16>& share, const Epilogue<bf16>& epilogue);

// The activation again, with the same bits, from what its product kept other than slopes.
void activate_kept_by_amx(bool is_gated, const bf16* kept, const MatrixView<bf16>& y);

}  // namespace tprimat::engine
