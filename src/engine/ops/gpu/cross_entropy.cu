#include <cmath>

#include "ops/gpu/chunk.h"
#include "ops/gpu/gpu_ops.h"
#include "ops/gpu/warp.h"

namespace tprimat::engine::gpu {
namespace {

constexpr int k_max_vocabulary_threads = 1024;

// One block for each row.
template <int n>
KernelLaunch vocabulary_launch(const CrossEntropyShape& shape) {
  const int64_t warps =
      std::clamp<int64_t>(parts_of(shape.vocab, int64_t{2} * n * k_warp), 1, k_max_vocabulary_threads / k_warp);
  return {dim3(static_cast<unsigned>(std::min(shape.rows, most_blocks()))), dim3(static_cast<unsigned>(warps * k_warp)),
          0, context().stream};
}

// n logits of a row from v on, a multiple of n; −∞ behind the last.
template <int n>
__device__ Chunk<float, n> read_logits(const float* row, int64_t v, int64_t vocab) {
  if (v + n <= vocab) return read_chunk<n>(row + v);
  Chunk<float, n> logits;
  TPRIMAT_UNROLL
  for (int j = 0; j < n; ++j) logits.values[j] = v + j < vocab ? row[v + j] : -k_infinity;
  return logits;
}
// As many of them as the row has.
template <int n, class T>
__device__ void write_gradients(T* dlogits, int64_t v, int64_t vocab, const Chunk<T, n>& gradients) {
  if (v + n <= vocab) return write_chunk<n>(dlogits + v, gradients);
  TPRIMAT_UNROLL
  for (int j = 0; j < n; ++j)
    if (v + j < vocab) dlogits[v + j] = gradients.values[j];
}

// The greatest of some logits and Σ e^(logit − largest).
struct RunningSoftmax {
  float largest = -k_infinity, sum = 0.0f;

  __device__ float power(float logit) const { return expf(logit - (largest == -k_infinity ? 0.0f : largest)); }

  template <int n>
  __device__ void take(const Chunk<float, n>& logits) {
    float top = logits.values[0];
    TPRIMAT_UNROLL
    for (int j = 1; j < n; ++j) top = greater_or_nan(top, logits.values[j]);
    if (top > largest || top != top) {
      sum *= expf(largest - top);
      largest = top;
    }
    TPRIMAT_UNROLL
    for (int j = 0; j < n; ++j) sum += power(logits.values[j]);
  }
};

// Of a whole row, for every thread of its block.
template <int n>
__device__ RunningSoftmax softmax_of_row(const float* row, int64_t vocab) {
  RunningSoftmax own;
  const int64_t step = int64_t{blockDim.x} * n;
  for (int64_t v = int64_t{threadIdx.x} * n; v < vocab; v += step) own.take(read_logits<n>(row, v, vocab));
  const float largest = block_max(own.largest);
  const float share = own.largest == -k_infinity ? 0.0f : own.sum * expf(own.largest - largest);
  return {largest, block_sum(share)};
}

// What a row's gradient is made of; target below 0: none here.
struct GradientOfRow {
  RunningSoftmax softmax;
  int64_t target;
  float scale;

  // dlogits[v] = (e^(row[v] − largest)/sum − [v = target])·scale. dlogits may lie over the row, whose logits are each
  // read before anything is written there: element v of dlogits begins no later than logit v.
  template <int n, class T>
  __device__ void write(const float* row, int64_t vocab, T* dlogits) const {
    const float share = 1.0f / softmax.sum;
    const int64_t step = int64_t{blockDim.x} * n, first = int64_t{threadIdx.x} * n;
    Chunk<float, n> logits{};
    if (first < vocab) logits = read_logits<n>(row, first, vocab);
    for (int64_t start = 0; start < vocab; start += step) {
      __syncthreads();
      const int64_t v = start + first;
      Chunk<float, n> next{};
      if (v + step < vocab) next = read_logits<n>(row, v + step, vocab);
      if (v < vocab) write_gradients<n>(dlogits, v, vocab, gradient<T>(logits, v, share));
      logits = next;
    }
  }

 private:
  template <class T, int n>
  __device__ Chunk<T, n> gradient(const Chunk<float, n>& logits, int64_t v, float share) const {
    Chunk<T, n> result;
    TPRIMAT_UNROLL
    for (int j = 0; j < n; ++j) {
      const float probability = softmax.power(logits.values[j]) * share;
      result.values[j] = store<T>((probability - (v + j == target ? 1.0f : 0.0f)) * scale);
    }
    return result;
  }
};

template <class T, int n>
__global__ void __launch_bounds__(k_max_vocabulary_threads)
    cross_entropy_rows(CrossEntropyShape shape, CrossEntropyArgs<T> args) {
  for (int64_t r = blockIdx.x; r < shape.rows; r += gridDim.x) {
    const float* row = args.logits + r * shape.stride;
    const int32_t target = args.targets[r];
    const RunningSoftmax softmax = softmax_of_row<n>(row, shape.vocab);
    if (threadIdx.x == 0) args.losses[r] = logf(softmax.sum) + softmax.largest - row[target];
    GradientOfRow{softmax, target, static_cast<float>(args.gradient_scale)}.template write<n>(
        row, shape.vocab, args.dlogits + r * shape.gradient_stride);
  }
}

template <int n>
__global__ void __launch_bounds__(k_max_vocabulary_threads)
    softmax_statistics(CrossEntropyShape shape, const float* logits, const int32_t* targets,
                       CrossEntropyStatistics<float> statistics) {
  for (int64_t r = blockIdx.x; r < shape.rows; r += gridDim.x) {
    const float* row = logits + r * shape.stride;
    const RunningSoftmax softmax = softmax_of_row<n>(row, shape.vocab);
    if (threadIdx.x != 0) continue;
    statistics.largest[r] = softmax.sum != softmax.sum ? softmax.sum : softmax.largest;
    statistics.sum[r] = softmax.sum;
    statistics.target_logit[r] = targets[r] >= 0 ? row[targets[r]] : 0.0f;
  }
}

template <class T, int n>
__global__ void __launch_bounds__(k_max_vocabulary_threads)
    cross_entropy_gradient_rows(CrossEntropyShape shape, CrossEntropyShardArgs<T> args) {
  for (int64_t r = blockIdx.x; r < shape.rows; r += gridDim.x) {
    const RunningSoftmax whole{args.whole.largest[r], args.whole.sum[r]};
    if (threadIdx.x == 0) args.losses[r] = logf(whole.sum) + whole.largest - args.whole.target_logit[r];
    GradientOfRow{whole, args.targets[r], static_cast<float>(args.gradient_scale)}.template write<n>(
        args.logits + r * shape.stride, shape.vocab, args.dlogits + r * shape.gradient_stride);
  }
}

__global__ void __launch_bounds__(k_block)
    rescale_sums(int64_t rows, const float* largest, const float* whole_largest, float* sum) {
  visit_array<1>(rows, [&](auto, int64_t r) { sum[r] *= expf(largest[r] - whole_largest[r]); });
}

// use(Width, shape) with the strides stated.
template <class T, class Use>
void with_gradient_rows(CrossEntropyShape shape, const float* logits, const T* dlogits, const Use& use) {
  shape.stride = shape.row(1);
  shape.gradient_stride = shape.gradient_row(1);
  if (shape.rows > 0)
    with_width<T>(fits_packs<T>({logits, dlogits}, {shape.stride, shape.gradient_stride}),
                  [&](auto width) { use(width, shape); });
}

template <class T>
void cross_entropy(const CrossEntropyShape& shape, const CrossEntropyArgs<T>& args) {
  with_gradient_rows(shape, args.logits, args.dlogits, [&](auto width, const CrossEntropyShape& stated) {
    constexpr int n = decltype(width)::value;
    launch(vocabulary_launch<n>(stated), cross_entropy_rows<T, n>, stated, args);
  });
}

void cross_entropy_statistics(const CrossEntropyShape& shape, const float* logits, const int32_t* targets,
                              const CrossEntropyStatistics<float>& statistics) {
  if (shape.rows == 0) return;
  CrossEntropyShape stated = shape;
  stated.stride = shape.row(1);
  with_width<float>(fits_packs<float>({logits}, {stated.stride}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    launch(vocabulary_launch<n>(stated), softmax_statistics<n>, stated, logits, targets, statistics);
  });
}

void rescale_exponential_sums(int64_t rows, const float* largest, const float* whole_largest, float* sum) {
  if (rows > 0) launch(array_launch(rows, 1), rescale_sums, rows, largest, whole_largest, sum);
}

template <class T>
void cross_entropy_gradient(const CrossEntropyShape& shape, const CrossEntropyShardArgs<T>& args) {
  with_gradient_rows(shape, args.logits, args.dlogits, [&](auto width, const CrossEntropyShape& stated) {
    constexpr int n = decltype(width)::value;
    launch(vocabulary_launch<n>(stated), cross_entropy_gradient_rows<T, n>, stated, args);
  });
}

}  // namespace

void set_ops(OpsByFormat<CrossEntropyOps>& ops) {
  ops.set_fast([]<class T>(CrossEntropyOps<T>& fast) {
    fast = {cross_entropy<T>, cross_entropy_statistics, rescale_exponential_sums, cross_entropy_gradient<T>};
  });
}

}  // namespace tprimat::engine::gpu
