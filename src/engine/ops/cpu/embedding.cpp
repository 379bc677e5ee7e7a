#include "ops/reference/embedding.h"

#include <numeric>
#include <vector>

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

// In double, by (sum − before)·(sum + before): a difference of squares would lose digits where they nearly cancel.
template <class T>
double backward_squares(const EmbeddingShape& shape, const int32_t* tokens, const T* dy, Accum<T>* dtable) {
  std::vector<double> growths(static_cast<size_t>(thread_count()));
  parallel_ranges(shape.cols, [&](int64_t begin, int64_t end, int range) {
    double growth = 0;
    for (int64_t r = 0; r < shape.rows; ++r) {
      if (tokens[r] < 0) continue;
      for (int64_t c = begin; c < end; ++c) {
        Accum<T>& sum = dtable[tokens[r] * shape.cols + c];
        const double before = sum;
        sum += widen(dy[r * shape.cols + c]);
        growth += (sum - before) * (sum + before);
      }
    }
    growths[static_cast<size_t>(range)] = growth;
  });
  return std::accumulate(growths.begin(), growths.end(), 0.0);
}

}  // namespace

void set_cpu_ops(OpsByFormat<EmbeddingOps>& ops) {
  ops.set_fast([]<class T>(EmbeddingOps<T>& fast) { fast = {forward, backward<T>, backward_squares<T>}; });
  ops.f64 = {forward, backward<double>};
}

}  // namespace tprimat::engine
