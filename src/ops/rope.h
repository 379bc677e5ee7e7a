#pragma once

#include <cstdint>

#include "ops/element.h"

namespace tprimat {

// Rotary position embedding (Su et al., arXiv 2104.09864, eq. 34), in the half-split order of Hugging Face's Llama:
// channel i of a head is paired with channel i + head_dim/2.
struct RopeShape {
  int64_t batch = 0;
  int64_t sequence = 0;
  int64_t heads = 0;       // consecutive heads to turn (queries and keys)
  int64_t head_dim = 0;    // even
  int64_t row_stride = 0;  // elements from one token to the next
};

// cosine[t·head_dim/2 + i] = cos(t · theta^(−2i/head_dim)), sine alike; `sequence` rows.
template <class A>
struct RopeTable {
  A* cosine;
  A* sine;
};
template <class A>
void fill_rope_table(int64_t sequence, int64_t head_dim, double theta, const RopeTable<A>& table);

// Turns heads in place: (a, b) → (a·cos − b·sin, a·sin + b·cos). `direction` is +1 forward, −1 for the gradient.
template <class T>
void rope_in_place(const RopeShape& shape, const RopeTable<Accum<T>>& table, int direction, T* heads);

}  // namespace tprimat
