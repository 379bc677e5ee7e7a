#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "device/element.h"

namespace tprimat::engine {

// Rotary position embedding (Su et al., arXiv 2104.09864, eq. 34), in the half-split order of Hugging Face's Llama:
// channel i of a head is paired with channel i + head_dim/2.
struct RopeShape {
  int64_t batch = 0;
  int64_t sequence = 0;
  int64_t heads = 0;       // consecutive heads to turn (queries or keys, or both)
  int64_t head_dim = 0;    // even
  int64_t row_stride = 0;  // elements from one token to the next
};

// How the frequencies f_i = theta^(−2i/head_dim) are stretched for sequences longer than those of the first training,
// as in Hugging Face's modeling_rope_utils.py.
//   linear  f/factor (Chen et al., arXiv 2306.15595)
//   llama3  f where a turn takes fewer than original_length/high_frequency tokens, f/factor where it takes more than
//           original_length/low_frequency, between them a blend that is linear in the turns per original_length
//   yarn    "NTK by parts" (Peng et al., arXiv 2309.00071, section 3.2): f where it makes more than beta_fast turns in
//           original_length tokens, f/factor where fewer than beta_slow, between them a blend that is linear in i;
//           cosines and sines are multiplied by the attention factor (ibid. section 3.4)
struct RopeStretch {
  enum class Kind { linear, llama3, yarn };
  Kind kind = Kind::linear;
  double factor = 1.0;
  int64_t original_length = 0;  // tokens of the longest sequence of the first training; llama3, yarn
  double low_frequency = 1.0;   // turns per original_length; llama3
  double high_frequency = 4.0;  // llama3
  double beta_fast = 32.0;      // turns per original_length; yarn
  double beta_slow = 1.0;       // yarn
  bool truncate = true;         // yarn: the blend begins and ends at whole channels
  std::optional<double> attention_factor = std::nullopt;  // yarn; absent: 0.1·ln(factor) + 1
};

struct RopeFrequencies {
  int64_t head_dim = 0;  // even
  double theta = 1e4;
  std::optional<RopeStretch> stretch = std::nullopt;

  std::vector<double> radians_per_token() const;  // head_dim/2 of them
  double amplitude() const;                       // of cosines and sines
};

// cosine[t·head_dim/2 + i] = amplitude · cos(positions[t] · radians_per_token[i]), sine alike; `count` rows.
template <class A>
struct RopeTable {
  A* cosine;
  A* sine;
};
template <class A>
void fill_rope_table(const RopeFrequencies& frequencies, const int64_t* positions, int64_t count,
                     const RopeTable<A>& table);

// Turns heads in place: (a, b) → (a·cos − b·sin, a·sin + b·cos); token t of each sequence by row t of the table.
// `direction` is +1 forward, −1 for the gradient.
template <class T>
void rope_in_place(const RopeShape& shape, const RopeTable<Accum<T>>& table, int direction, T* heads);

}  // namespace tprimat::engine
