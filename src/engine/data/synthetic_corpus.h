#pragma once

#include <vector>

#include "data/random_bits.h"
#include "data/token_source.h"

namespace tprimat::engine {

// How well a model can predict the corpus, in nats per token. The loss starts near `uniform` and falls through the
// others in turn.
struct CorpusEntropy {
  double uniform = 0;  // ln V: knows nothing
  double unigram = 0;  // knows how frequent each token is
  double markov = 0;   // also knows what follows the previous token, but not where a copy runs
  double floor = 0;    // also recognises copies; no model can stay below this
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
// With m = k_follow, c = k_copy, n segments per sample, s(x) the successor of x, π the stationary frequencies:
//   unigram = −Σ π ln π            π(s(x)) = (1−m)·z(s(x)) + m·π(x)
//   markov  = Σ_x π(x)·H(Y|x)      P(y|x) = (1−m)·z(y) + m·[y = s(x)]
//   floor   = (share of fresh segments)·markov + (entropy of the choices per segment) / 32
// The floor is that of a reader who knows where segments begin; it leaves out the first token after a border and fresh
// segments that happen to look like copies.
class SyntheticCorpus final : public TokenSource {
 public:
  static constexpr uint32_t k_follow_numerator = 5, k_follow_denominator = 8;
  static constexpr uint32_t k_copy_numerator = 1, k_copy_denominator = 4;
  static constexpr int64_t k_segment = 32;  // tokens

  SyntheticCorpus(int64_t vocab_size, int64_t seed);

  int64_t vocab_size() const override { return static_cast<int64_t>(cumulative_weights_.size()); }
  void read_sample(int64_t index, std::span<int32_t> tokens) const override;
  std::string describe() const override;

  int32_t successor(int32_t token) const;
  CorpusEntropy entropy(int64_t sequence_length) const;

 private:
  int32_t draw_fresh(RandomStream& random) const;
  double fresh_probability(size_t token) const;
  std::vector<double> stationary_frequencies() const;

  std::vector<uint64_t> cumulative_weights_;  // fixed point; [r] is the weight of all tokens up to and including r
  uint64_t seed_;
};

}  // namespace tprimat::engine
