#include "device/gpu/context.h"
#include "ops/gpu/attention_kernels.h"
#include "ops/gpu/element.h"

namespace tprimat::engine::gpu {
namespace {

template <class T>
__global__ void add_heads_kernel(int64_t width, HeadRows<const T> from, HeadRows<T> to) {
  const T* source = from.data + blockIdx.y * from.sequence_stride + blockIdx.x * from.row_stride;
  T* target = to.data + blockIdx.y * to.sequence_stride + blockIdx.x * to.row_stride;
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) target[i] = store<T>(load(target[i]) + load(source[i]));
}

template <class T>
__global__ void clear_heads_kernel(int64_t width, HeadRows<T> rows) {
  T* target = rows.data + blockIdx.y * rows.sequence_stride + blockIdx.x * rows.row_stride;
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) target[i] = T{};
}

KernelLaunch launch_rows(const HeadBlock& block) {
  return {dim3(static_cast<unsigned>(block.rows), static_cast<unsigned>(block.batch)), dim3(128), 0, context().stream};
}
bool is_empty(const HeadBlock& block) { return block.batch == 0 || block.rows == 0; }

}  // namespace

template <class T>
void add_heads(const HeadBlock& block, const HeadRows<const T>& from, const HeadRows<T>& to) {
  if (!is_empty(block)) launch(launch_rows(block), add_heads_kernel<T>, block.width, from, to);
}
template <class T>
void clear_heads(const HeadBlock& block, const HeadRows<T>& rows) {
  if (!is_empty(block)) launch(launch_rows(block), clear_heads_kernel<T>, block.width, rows);
}

#define TPRIMAT_HEAD_ROWS(T)                                                               \
  template void add_heads(const HeadBlock&, const HeadRows<const T>&, const HeadRows<T>&); \
  template void clear_heads(const HeadBlock&, const HeadRows<T>&);
TPRIMAT_HEAD_ROWS(bf16)
TPRIMAT_HEAD_ROWS(f16)
#undef TPRIMAT_HEAD_ROWS

}  // namespace tprimat::engine::gpu
