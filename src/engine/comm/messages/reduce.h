#pragma once

#include <cstddef>
#include <span>

#include "comm/communicator.h"

namespace tprimat::engine {

// to[i] = sources[0][i] ⊕ sources[1][i] ⊕ …, from left to right, in the type's accumulator (float for the 16-bit types)
// and rounded once. `to` may be one of the sources. A maximum with a NaN among its values is NaN, so that no rank
// overlooks it.
void reduce_in_order(std::span<const std::byte* const> sources, std::byte* to, int64_t count, ElementType type,
                     Reduction reduction);

}  // namespace tprimat::engine
