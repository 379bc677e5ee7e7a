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

template <class T, class M>
void adamw_update_compact(const AdamwStep& s, uint64_t seed, const CompactAdamwRange<T, M>& range) {
  using A = Accum<T>;
  const double correction1 = 1.0 - std::pow(s.beta1, static_cast<double>(s.step));
  const double correction2 = 1.0 - std::pow(s.beta2, static_cast<double>(s.step));
  const uint64_t key = rounding_key(seed, s.step);
  for (int64_t i = 0; i < range.count; ++i) {
    const uint64_t bits = rounding_bits(key, range.first_value + i);
    const auto chance = [&](int which) { return static_cast<uint32_t>(bits >> (16 * which)) & 0xFFFFu; };
    const double g = static_cast<double>(range.gradient[i]) * s.gradient_scale;
    const double m = s.beta1 * static_cast<double>(widen(range.first_moment[i])) + (1.0 - s.beta1) * g;
    const double v = s.beta2 * static_cast<double>(widen(range.second_moment[i])) + (1.0 - s.beta2) * g * g;
    const double w = static_cast<double>(range.master != nullptr ? range.master[i] : widen(range.weight[i]));
    const double move = m / correction1 / (std::sqrt(v / correction2) + s.epsilon) + range.weight_decay * w;
    const A moved = static_cast<A>(w - s.learning_rate * move);
    range.first_moment[i] = round_by_chance<M>(static_cast<Accum<M>>(m), chance(1));
    range.second_moment[i] = round_by_chance<M>(static_cast<Accum<M>>(v), chance(2));
    if (range.master != nullptr) {
      range.master[i] = moved;
      range.weight[i] = narrow<T>(moved);
    } else {
      range.weight[i] = round_by_chance<T>(moved, chance(0));
    }
  }
}

template <class T, class M>
void adamw_update_compact(const AdamwStep& step, uint64_t seed, std::span<const CompactAdamwRange<T, M>> ranges) {
  for (const CompactAdamwRange<T, M>& range : ranges) reference::adamw_update_compact(step, seed, range);
}

}  // namespace tprimat::engine::reference
