#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <utility>

namespace tprimat::engine {

// numpy.random.RandomState(seed) as far as Megatron-LM uses it, bit for bit. The generator is MT19937 seeded by Knuth's
// recurrence, which std::mt19937 is by the standard's own definition.
class NumpyRandom {
 public:
  explicit NumpyRandom(uint32_t seed) : generator_(seed) {}

  // Uniform in [0, most]: draws of the smallest sufficient number of bits, until one fits (numpy's random_interval, in
  // numpy/random/src/distributions/distributions.c). No draw for most = 0.
  uint32_t draw_interval(uint32_t most);

  // RandomState.shuffle of a vector: Fisher and Yates from the end (numpy/random/mtrand.pyx, _shuffle_raw). At most
  // 2^32 values.
  template <class T>
  void shuffle(std::span<T> values) {
    for (size_t i = values.size(); i-- > 1;) std::swap(values[i], values[draw_interval(static_cast<uint32_t>(i))]);
  }

 private:
  std::mt19937 generator_;
};

}  // namespace tprimat::engine
