#pragma once

#include <optional>
#include <vector>

#include "ops/rope.h"
#include "spec/model_spec.h"

namespace tprimat::engine {

// How the frequencies f_i = theta^(−2i/head_dim) are stretched for sequences longer than those of the first training,
// as in Hugging Face's modeling_rope_utils.py.
//   linear  f/factor (Chen et al., arXiv 2306.15595)
//   llama3  f where a turn takes fewer than L/high_freq_factor tokens, f/factor where it takes more than
//           L/low_freq_factor, between them a blend that is linear in the turns per L; L =
//           original_max_position_embeddings
//   yarn    "NTK by parts" (Peng et al., arXiv 2309.00071, section 3.2): f where it makes more than beta_fast turns in
//   L
//           tokens, f/factor where fewer than beta_slow, between them a blend that is linear in i and begins and ends
//           at whole channels; cosines and sines are multiplied by 0.1·ln(factor) + 1 (ibid. section 3.4)
struct RopeFrequencies {
  int64_t head_dim = 0;  // even
  double theta = 1e4;
  std::optional<RopeScaling> stretch = std::nullopt;

  std::vector<double> radians_per_token() const;  // head_dim/2 of them
  double amplitude() const;                       // of cosines and sines
};

// cosine[t·head_dim/2 + i] = amplitude · cos(positions[t] · radians_per_token[i]), sine alike; `count` rows.
template <class A>
void fill_rope_table(const RopeFrequencies& frequencies, const int64_t* positions, int64_t count,
                     const RopeTable<A>& table);

}  // namespace tprimat::engine
