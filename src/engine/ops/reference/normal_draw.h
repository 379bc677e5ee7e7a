#pragma once

#include <cmath>

#include "ops/normal_draw.h"

namespace tprimat::engine::reference {

template <class T>
void draw_normal(int64_t count, const NormalDraw& draw, T* to) {
  const auto root = [](double x) { return std::sqrt(x); };
  for (int64_t i = 0; i < count; ++i)
    to[i] = narrow<T>(static_cast<Accum<T>>(normal_value(draw, draw.whole_index(i), root)));
}

}  // namespace tprimat::engine::reference
