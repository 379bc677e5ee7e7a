#include "base/error.h"
#include "ops/gpu/attention_choice.h"
#include "ops/gpu/attention_cudnn.h"
#include "ops/gpu/attention_kernels.h"
#include "ops/gpu/attention_view.h"
#include "ops/gpu/gpu_ops.h"

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

void require_head_size(const AttentionShape& shape) {
  if (shape.head_dim <= k_max_head_dim) return;
  throw Error(Problem{"attention heads of " + std::to_string(shape.head_dim) + " values", "attention on a GPU",
                      "the kernels support head sizes up to " + std::to_string(k_max_head_dim) +
                          "; give the model more heads, or train on the CPU"});
}

template <class T>
void attention_forward(const AttentionShape& shape, const AttentionInputs<T>& inputs, const HeadRows<T>& y,
                       float* logsumexp) {
  require_head_size(shape);
  if (shape.batch == 0 || shape.queries == 0) return;
  if constexpr (std::is_same_v<T, float>) {
    note_attention(AttentionPass::forward, AttentionChoice::own, nullptr);
    float_attention_forward(shape, inputs, y, logsumexp);
  } else {
    const AttentionChoice choice = attention_choice();
    const bool own = choice == AttentionChoice::own;
    const CudnnRefusal refusal = own ? nullptr : cudnn_attention_forward(shape, inputs, y, logsumexp);
    note_attention(AttentionPass::forward, choice, refusal);
    if (own || refusal != nullptr) tiled_attention_forward(shape, inputs, y, logsumexp);
  }
}

template <class T>
void attention_backward(const AttentionShape& shape, const AttentionGradient<T>& gradient) {
  require_head_size(shape);
  if (shape.batch == 0) return;
  if constexpr (std::is_same_v<T, float>) {
    note_attention(AttentionPass::backward, AttentionChoice::own, nullptr);
    float_attention_backward(shape, gradient);
  } else {
    const AttentionChoice choice = shape.queries > 0 ? attention_choice() : AttentionChoice::own;
    const bool own = choice == AttentionChoice::own;
    const CudnnRefusal refusal =
        own ? nullptr : cudnn_attention_backward(shape, gradient, choice == AttentionChoice::cudnn);
    note_attention(AttentionPass::backward, choice, refusal);
    if (own || refusal != nullptr) tiled_attention_backward(shape, gradient);
  }
}

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

void set_ops(OpsByFormat<AttentionOps>& ops) {
  ops.set_fast([]<class T>(AttentionOps<T>& fast) { fast = {attention_forward<T>, attention_backward<T>}; });
}

}  // namespace tprimat::engine::gpu
