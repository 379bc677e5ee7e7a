#include "ops/embedding.h"

#include <algorithm>

#include "device/parallel.h"
#include "ops/reference/embedding.h"

// Copies and plain additions, bound by memory: the reference loops, shared out over threads.
namespace tprimat::engine {
namespace {

template <class T>
void forward(const EmbeddingShape& shape, const int32_t* tokens, const T* table, T* y) {
  parallel_ranges(shape.rows, [&](int64_t begin, int64_t end) {
    reference::embedding_forward({end - begin, shape.cols}, tokens + begin, table, y + begin * shape.cols);
  });
}

template <class T>
void backward(const EmbeddingShape& shape, const int32_t* tokens, const T* dy, Accum<T>* dtable) {
  parallel_ranges(shape.cols, [&](int64_t begin, int64_t end) {
    reference::embedding_backward_columns(shape, tokens, dy, dtable, {begin, end});
  });
}

}  // namespace

#define TPRIMAT_EMBEDDING(T)                                                                                      \
  template <>                                                                                                     \
  void embedding_forward<T>(const EmbeddingShape& shape, const int32_t* tokens, const T* table, T* y) {           \
    forward(shape, tokens, table, y);                                                                             \
  }                                                                                                               \
  template <>                                                                                                     \
  void embedding_backward<T>(const EmbeddingShape& shape, const int32_t* tokens, const T* dy, Accum<T>* dtable) { \
    backward(shape, tokens, dy, dtable);                                                                          \
  }
TPRIMAT_EMBEDDING(float)
TPRIMAT_EMBEDDING(bf16)
TPRIMAT_EMBEDDING(f16)
TPRIMAT_EMBEDDING(double)
#undef TPRIMAT_EMBEDDING

}  // namespace tprimat::engine
