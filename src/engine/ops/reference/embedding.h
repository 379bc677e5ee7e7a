#pragma once

#include <algorithm>
#include <utility>

#include "ops/embedding.h"

namespace tprimat::engine::reference {

template <class T>
void embedding_forward(const EmbeddingShape& shape, const int32_t* tokens, const T* table, T* y) {
  for (int64_t r = 0; r < shape.rows; ++r) {
    T* row = y + r * shape.cols;
    if (tokens[r] >= 0)
      std::copy_n(table + tokens[r] * shape.cols, shape.cols, row);
    else
      std::fill_n(row, shape.cols, T{});
  }
}

struct ColumnRange {
  int64_t begin = 0, end = 0;
};

// These columns only, so that threads can share the work without sharing a sum.
template <class T>
void embedding_backward_columns(const EmbeddingShape& shape, const int32_t* tokens, const T* dy, Accum<T>* dtable,
                                const ColumnRange& columns) {
  for (int64_t r = 0; r < shape.rows; ++r) {
    if (tokens[r] < 0) continue;
    for (int64_t c = columns.begin; c < columns.end; ++c)
      dtable[tokens[r] * shape.cols + c] += widen(dy[r * shape.cols + c]);
  }
}

template <class T>
void embedding_backward(const EmbeddingShape& shape, const int32_t* tokens, const T* dy, Accum<T>* dtable) {
  embedding_backward_columns(shape, tokens, dy, dtable, {0, shape.cols});
}

}  // namespace tprimat::engine::reference
