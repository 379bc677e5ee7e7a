#pragma once

#include <cstdint>
#include <vector>

#include "data/token_source.h"

namespace tprimat::engine {

// Random numbers that are the same on every machine: integers only, no library generator.

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

// An endless made-up language with the three kinds of structure that language models learn first. The language depends
// on V alone; the seed chooses the samples. Everything is drawn with integers, so a sample is the same on every
// machine.
//   frequency  a fresh token is token r with probability z(r) ∝ 1/(r+1) (Zipf)
//   order      with probability k_follow a token is not fresh but the successor of the one before it; successors
//              form a cycle within each band of 16 neighbouring ranks, so frequencies stay those of Zipf to within the
//              band
//   copies     a sample is cut into segments of 32 tokens; each after the first is, with probability k_copy, a
//              verbatim copy of an earlier segment of the same sample that is chosen uniformly
class SyntheticCorpus final : public TokenSource {
 public:
  static constexpr uint32_t k_follow_numerator = 5, k_follow_denominator = 8;
  static constexpr uint32_t k_copy_numerator = 1, k_copy_denominator = 4;
  static constexpr int64_t k_segment = 32;  // tokens

  SyntheticCorpus(int64_t vocab_size, int64_t seed);

  int64_t vocab_size() const { return static_cast<int64_t>(cumulative_weights_.size()); }
  void read_sample(int64_t index, std::span<int32_t> tokens) const override;

  int32_t successor(int32_t token) const;

 private:
  int32_t draw_fresh(RandomStream& random) const;

  std::vector<uint64_t> cumulative_weights_;  // fixed point; [r] is the weight of all tokens up to and including r
  uint64_t seed_;
};

}  // namespace tprimat::engine
