#pragma once

#include <cmath>

#include "ops/adamw.h"

namespace tprimat::engine::reference {

template <class T>
void adamw_update(const AdamwStep& s, const AdamwRange<T>& range) {
  using A = Accum<T>;
  const double correction1 = 1.0 - std::pow(s.beta1, static_cast<double>(s.step));
  const double correction2 = 1.0 - std::pow(s.beta2, static_cast<double>(s.step));
  for (int64_t i = 0; i < range.count; ++i) {
    const double g = static_cast<double>(range.gradient[i]) * s.gradient_scale;
    const double m = s.beta1 * static_cast<double>(range.first_moment[i]) + (1.0 - s.beta1) * g;
    const double v = s.beta2 * static_cast<double>(range.second_moment[i]) + (1.0 - s.beta2) * g * g;
    const double w = static_cast<double>(range.master[i]);
    const double move = m / correction1 / (std::sqrt(v / correction2) + s.epsilon) + range.weight_decay * w;
    range.first_moment[i] = static_cast<A>(m);
    range.second_moment[i] = static_cast<A>(v);
    range.master[i] = static_cast<A>(w - s.learning_rate * move);
    range.weight[i] = narrow<T>(range.master[i]);
  }
}

template <class T>
void adamw_update_all(const AdamwStep& step, std::span<const AdamwRange<T>> ranges) {
  for (const AdamwRange<T>& range : ranges) adamw_update(step, range);
}

}  // namespace tprimat::engine::reference
