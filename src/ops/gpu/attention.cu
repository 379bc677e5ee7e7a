#include "base/error.h"
#include "ops/gpu/attention_choice.h"
#include "ops/gpu/attention_cudnn.h"
#include "ops/gpu/attention_kernels.h"
#include "ops/gpu/attention_view.h"
#include "ops/gpu/gpu_ops.h"

namespace tprimat::gpu {
namespace {

void require_head_size(const AttentionShape& shape) {
  if (shape.head_dim <= k_most_head_dim) return;
  throw Error(Problem{"attention heads of " + std::to_string(shape.head_dim) + " values", "attention on a GPU",
                      "the kernels take heads of at most " + std::to_string(k_most_head_dim) +
                          "; give the model more heads, or train on the CPU"});
}

}  // namespace

template <class T>
void attention_forward(const AttentionShape& shape, const AttentionInputs<T>& inputs, const HeadRows<T>& y,
                       float* logsumexp) {
  require_head_size(shape);
  if (shape.batch == 0 || shape.queries == 0) return;
  if constexpr (std::is_same_v<T, float>)
    float_attention_forward(shape, inputs, y, logsumexp);
  else if (attention_choice() == AttentionChoice::own || !cudnn_attention_forward(shape, inputs, y, logsumexp))
    tiled_attention_forward(shape, inputs, y, logsumexp);
}

template <class T>
void attention_backward(const AttentionShape& shape, const AttentionGradient<T>& gradient) {
  require_head_size(shape);
  if (shape.batch == 0) return;
  if constexpr (std::is_same_v<T, float>) {
    float_attention_backward(shape, gradient);
  } else {
    const AttentionChoice choice = attention_choice();
    if (choice != AttentionChoice::own && shape.queries > 0 &&
        cudnn_attention_backward(shape, gradient, choice == AttentionChoice::cudnn))
      return;
    tiled_attention_backward(shape, gradient);
  }
}

#define TPRIMAT_ATTENTION(T)                                                                                     \
  template void attention_forward(const AttentionShape&, const AttentionInputs<T>&, const HeadRows<T>&, float*); \
  template void attention_backward(const AttentionShape&, const AttentionGradient<T>&);
TPRIMAT_ATTENTION(float)
TPRIMAT_ATTENTION(bf16)
TPRIMAT_ATTENTION(f16)
#undef TPRIMAT_ATTENTION

}  // namespace tprimat::gpu
