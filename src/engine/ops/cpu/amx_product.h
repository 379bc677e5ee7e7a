#pragma once

#include "ops/cpu/bf16_share.h"
#include "ops/matmul.h"

namespace tprimat::engine {

// Elements of the columns that stay in the second-level cache while rows pass by.
inline constexpr int64_t k_amx_columns_size = 384 * 1024;

// The product of a share on a CPU with has_amx(), by all threads: of one operand, each thread packs a block that fits
// its second-level cache; the other one is packed once for all. Rows that can stay as they lie are not packed.
template <class C>
void multiply_share_by_amx(const Bf16Share<C>& share);
// The same, and what the epilogue does to the sums.
void multiply_share_by_amx(const Bf16Share<bf16>& share, const Epilogue<bf16>& epilogue);

// y, rows×width: the activation again, with the same bits, from what its product kept.
void activate_kept_by_amx(bool is_gated, const KeptShape& of, const bf16* kept, bf16* y);

}  // namespace tprimat::engine
