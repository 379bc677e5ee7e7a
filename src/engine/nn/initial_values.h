#pragma once

#include <cstdint>
#include <vector>

#include "ops/normal_draw.h"
#include "parameters/parameters.h"

namespace tprimat::engine {

// Local values [first, first + count) of those asked for: what one call of OpTable::draw_normal draws.
struct InitialPiece {
  int64_t first, count;
  NormalDraw draw;
};
// The initial values of one weight, drawn from N(mean, stddev²): of its local values [begin, begin + count). Value i of
// the whole weight depends on the seed, the weight's name and i only, so that any number of threads or ranks draws the
// same weights.
std::vector<InitialPiece> initial_values(const Parameter& parameter, int64_t seed, int64_t begin, int64_t count);

}  // namespace tprimat::engine
