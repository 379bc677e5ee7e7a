#pragma once

#include <string>

#include "ops/attention.h"

namespace tprimat::engine::gpu {

// Attention by NVIDIA's cuDNN, loaded when it is first asked for; T is bf16 or f16. Null where it is done, else why
// not, with nothing done: cuDNN is not there (the program was built without its headers, or the machine has no
// libcudnn.so.9) or does not do the shape. What cuDNN calls stats is the logsumexp of ops/attention.h, in natural
// logarithms of scaled scores. The first call for a shape plans it, which allocates and takes long, so it is not to be
// made while work is recorded.
using CudnnRefusal = const std::string*;  // lasts
template <class T>
CudnnRefusal cudnn_attention_forward(const AttentionShape& shape, const AttentionInputs<T>& inputs,
                                     const HeadRows<T>& y, float* logsumexp);
// in_order: the same inputs give the same bits.
template <class T>
CudnnRefusal cudnn_attention_backward(const AttentionShape& shape, const AttentionGradient<T>& gradient, bool in_order);

// Why there is no cuDNN here; null where there is.
CudnnRefusal refusal_of_cudnn();
// Whether the library is on this machine and the program was built for it, so that it should work.
bool is_cudnn_installed();

}  // namespace tprimat::engine::gpu
