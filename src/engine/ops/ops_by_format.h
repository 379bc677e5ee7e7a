#pragma once

#include "device/element.h"

namespace tprimat::engine {

// One group of operations, such as RmsNormOps, in each number format as one device does it. Double is the reference's.
template <template <class> class Ops>
struct OpsByFormat {
  Ops<float> f32 = {};
  Ops<bf16> bfloat16 = {};
  Ops<f16> float16 = {};
  Ops<double> f64 = {};

  // set(ops) for each format that devices compute fast.
  template <class Set>
  void set_fast(const Set& set) {
    set(f32);
    set(bfloat16);
    set(float16);
  }
  template <class T>
  const Ops<T>& of() const {
    if constexpr (std::is_same_v<T, float>) return f32;
    if constexpr (std::is_same_v<T, bf16>) return bfloat16;
    if constexpr (std::is_same_v<T, f16>) return float16;
    if constexpr (std::is_same_v<T, double>) return f64;
  }
};

}  // namespace tprimat::engine
