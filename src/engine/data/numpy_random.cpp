#include "data/numpy_random.h"

#include <bit>

namespace tprimat::engine {

uint32_t NumpyRandom::draw_interval(uint32_t most) {
  if (most == 0) return 0;
  const uint32_t mask = ~uint32_t{0} >> std::countl_zero(most);
  uint32_t value;
  do {
    value = static_cast<uint32_t>(generator_()) & mask;
  } while (value > most);
  return value;
}

}  // namespace tprimat::engine
