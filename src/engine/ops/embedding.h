#pragma once

#include <cstdint>

#include "device/element.h"

namespace tprimat::engine {

struct EmbeddingShape {
  int64_t rows = 0;   // tokens
  int64_t cols = 0;   // hidden size
  int64_t vocab = 0;  // of the table, above every token; 0: not stated
};

template <class T>
struct EmbeddingOps {
  // y[r] = table[tokens[r]].  table: vocab×cols; y: rows×cols. A token below 0 is another rank's: y[r] = 0.
  void (*embedding_forward)(const EmbeddingShape&, const int32_t* tokens, const T* table, T* y);
  // dtable[tokens[r]] += dy[r], in the order of the rows; rows with a token below 0 are left out.
  void (*embedding_backward)(const EmbeddingShape&, const int32_t* tokens, const T* dy, Accum<T>* dtable);
  // The same; returns by how much Σ dtable² grows, added up in an order that depends on the number of threads alone.
  // Null: the norm reads the gradient again.
  double (*embedding_backward_squares)(const EmbeddingShape&, const int32_t* tokens, const T* dy,
                                       Accum<T>* dtable) = nullptr;
};

}  // namespace tprimat::engine
