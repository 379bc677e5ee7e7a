#pragma once

#include <cstdint>

#include "device/element.h"

namespace tprimat::engine {

// Rotary position embedding (Su et al., arXiv 2104.09864, eq. 34), in the half-split order of Hugging Face's Llama:
// channel i of a head is paired with channel i + head_dim/2.
struct RopeShape {
  int64_t batch = 0;
  int64_t sequence = 0;
  int64_t heads = 0;       // consecutive heads to rotate (queries or keys, or both)
  int64_t head_dim = 0;    // even
  int64_t row_stride = 0;  // elements from one token to the next
};

// Of the angle of each pair of channels: a row for each token, of head_dim/2 values.
template <class A>
struct RopeTable {
  A* cosine = nullptr;
  A* sine = nullptr;
};

template <class T>
struct RopeOps {
  // Rotates heads in place: (a, b) → (a·cos − b·sin, a·sin + b·cos); token t of each sequence by row t of the table.
  // `direction` is +1 forward, −1 for the gradient.
  void (*rope_in_place)(const RopeShape&, const RopeTable<Accum<T>>&, int direction, T* heads);
};

}  // namespace tprimat::engine
