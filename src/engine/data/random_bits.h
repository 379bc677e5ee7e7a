#pragma once

#include <cstdint>

// Random numbers that are the same on every machine: integers only, no library generator.
namespace tprimat::engine {

// The finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
uint64_t scramble_bits(uint64_t bits);

// One independent stream per (seed, index).
class RandomStream {
 public:
  RandomStream(uint64_t seed, uint64_t index) : state_(scramble_bits(scramble_bits(seed) ^ index)) {}
  uint64_t next_bits();
  uint64_t next_below(uint64_t limit);  // uniform in [0, limit), limit > 0; bias below limit / 2^64
  bool next_chance(uint32_t numerator, uint32_t denominator) { return next_below(denominator) < numerator; }

 private:
  uint64_t state_;
};

}  // namespace tprimat::engine
