#include "ops/reference/embedding.h"
#include "device/parallel.h"
#include "ops/op_table.h"

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

void set_cpu_ops(OpsByFormat<EmbeddingOps>& ops) {
  ops.set_fast([]<class T>(EmbeddingOps<T>& fast) { fast = {forward, backward<T>}; });
  ops.f64 = {forward, backward<double>};
}

}  // namespace tprimat::engine
