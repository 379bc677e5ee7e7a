#include "ops/gpu/chunk.h"
#include "ops/gpu/fast_math.h"
#include "ops/gpu/gpu_ops.h"

namespace tprimat::engine::gpu {
namespace {

template <class T, int n>
__global__ void __launch_bounds__(k_block) swiglu_rows(SwigluShape shape, const T* gate_up, T* y) {
  visit_matrix(shape.rows, shape.width / n, [&](int64_t row, int64_t chunk) {
    const T* from = gate_up + row * 2 * shape.width + chunk * n;
    const Chunk<T, n> gate = read_chunk<n>(from), up = read_chunk<n>(from + shape.width);
    Chunk<T, n> to;
    TPRIMAT_UNROLL
    for (int j = 0; j < n; ++j) {
      const float z = load(gate.values[j]);
      to.values[j] = store<T>(z * sigmoid(z) * load(up.values[j]));
    }
    write_chunk<n>(y + row * shape.width + chunk * n, to);
  });
}

template <class T, int n>
__global__ void __launch_bounds__(k_block)
    swiglu_gradient_rows(SwigluShape shape, const T* gate_up, const T* dy, T* dgate_up) {
  visit_matrix(shape.rows, shape.width / n, [&](int64_t row, int64_t chunk) {
    const int64_t at = row * 2 * shape.width + chunk * n;
    const Chunk<T, n> gate = read_chunk<n>(gate_up + at), up = read_chunk<n>(gate_up + at + shape.width);
    const Chunk<T, n> grad = read_chunk<n>(dy + row * shape.width + chunk * n);
    Chunk<T, n> dgate, dup;
    TPRIMAT_UNROLL
    for (int j = 0; j < n; ++j) {
      const float z = load(gate.values[j]), d = load(grad.values[j]), s = sigmoid(z);
      dgate.values[j] = store<T>(d * load(up.values[j]) * s * (1.0f + z * (1.0f - s)));
      dup.values[j] = store<T>(d * z * s);
    }
    write_chunk<n>(dgate_up + at, dgate);
    write_chunk<n>(dgate_up + at + shape.width, dup);
  });
}

template <class T>
void swiglu_forward(const SwigluShape& shape, const T* gate_up, T* y) {
  if (shape.rows == 0 || shape.width == 0) return;
  with_width<T>(fits_packs<T>({gate_up, y}, {shape.width}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    launch(matrix_launch(shape.rows, shape.width / n), swiglu_rows<T, n>, shape, gate_up, y);
  });
}

template <class T>
void swiglu_backward(const SwigluShape& shape, const T* gate_up, const T* dy, T* dgate_up) {
  if (shape.rows == 0 || shape.width == 0) return;
  with_width<T>(fits_packs<T>({gate_up, dy, dgate_up}, {shape.width}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    launch(matrix_launch(shape.rows, shape.width / n), swiglu_gradient_rows<T, n>, shape, gate_up, dy, dgate_up);
  });
}

}  // namespace

void set_ops(OpsByFormat<SwigluOps>& ops) {
  ops.set_fast([]<class T>(SwigluOps<T>& fast) { fast = {swiglu_forward<T>, swiglu_backward<T>}; });
}

}  // namespace tprimat::engine::gpu
