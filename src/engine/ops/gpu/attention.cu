#include "base/error.h"
#include "ops/gpu/attention_cudnn.h"
#include "ops/gpu/attention_kernels.h"
#include "ops/gpu/attention_note.h"
#include "ops/gpu/attention_view.h"
#include "ops/gpu/gpu_ops.h"

namespace tprimat::engine::gpu {
namespace {

void require_head_size(const AttentionShape& shape) {
  if (shape.head_dim <= k_max_head_dim) return;
  throw Error(Problem{"attention heads of " + std::to_string(shape.head_dim) + " values", "attention on a GPU",
                      "the kernels support head sizes up to " + std::to_string(k_max_head_dim) +
                          "; give the model more heads, or train on the CPU"});
}

}  // namespace

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

#define TPRIMAT_ATTENTION(T)                                                                                     \
  template void attention_forward(const AttentionShape&, const AttentionInputs<T>&, const HeadRows<T>&, float*); \
  template void attention_backward(const AttentionShape&, const AttentionGradient<T>&);
TPRIMAT_ATTENTION(float)
TPRIMAT_ATTENTION(bf16)
TPRIMAT_ATTENTION(f16)
#undef TPRIMAT_ATTENTION

}  // namespace tprimat::engine::gpu
