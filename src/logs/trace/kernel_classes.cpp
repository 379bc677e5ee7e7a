#include "trace/kernel_classes.h"

#include <algorithm>
#include <string>

namespace tprimat::logs {
namespace {

using enum KernelClass;

constexpr KernelPattern k_patterns[] = {
    // Kernels that Inductor generates are named after all operations fused into them, those of other libraries
    // included, so they are told first.
    {attention, "^triton_", "attention"},
    {matmul, "^triton_tem_"},
    {norm, "^triton_", "layer_norm"},
    {norm, "^triton_", "rms_norm"},
    {norm, "^triton_", "rsqrt"},
    {softmax_loss, "^triton_", "softmax"},
    {softmax_loss, "^triton_", "nll_loss"},
    {elementwise, "^triton_poi_"},
    {elementwise, "^triton_red_"},
    {elementwise, "^triton_per_"},
    {elementwise, "^triton_for_"},

    // NCCL, RCCL and what replaces them: MSCCL, one- and two-shot all-reduce, symmetric memory, DeepEP, NVSHMEM,
    // Transformer Engine's user buffers.
    {collective, "nccl"},
    {collective, "rccl"},
    {collective, "msccl"},
    {collective, "all_reduce"},
    {collective, "allreduce"},
    {collective, "all_gather"},
    {collective, "allgather"},
    {collective, "reduce_scatter"},
    {collective, "reducescatter"},
    {collective, "all_to_all"},
    {collective, "alltoall"},
    {collective, "cross_device_reduce"},
    {collective, "multimem_"},
    {collective, "nvshmem"},
    {collective, "deep_ep"},
    {collective, "userbuffers"},

    {norm, "layernorm"},
    {norm, "layer_norm"},
    {norm, "rmsnorm"},
    {norm, "rms_norm"},
    {norm, "batchnorm"},
    {norm, "batch_norm"},
    {norm, "groupnorm"},
    {norm, "group_norm"},
    {norm, "rowwisemoments"},
    {norm, "instance_norm"},
    {norm, "cudnn::bn_"},
    {norm, "ln_fwd"},
    {norm, "ln_bwd"},
    {norm, "normalization::"},
    {norm, "gammabeta"},

    {attention, "flash"},
    {attention, "fmha"},
    {attention, "attn"},
    {attention, "attention"},
    {attention, "sdpa"},
    {attention, "mha_fwd"},
    {attention, "mha_bwd"},

    {optimizer, "adam"},
    {optimizer, "multi_tensor_apply"},
    {optimizer, "fused_sgd"},
    {optimizer, "fusedsgd"},
    {optimizer, "lambstage"},
    {optimizer, "muon"},

    {softmax_loss, "softmax"},
    {softmax_loss, "cross_entropy"},
    {softmax_loss, "crossentropy"},
    {softmax_loss, "nll_loss"},
    {softmax_loss, "logsumexp"},
    {softmax_loss, "mse_kernel"},
    {softmax_loss, "mse_backward"},
    {softmax_loss, "_loss"},

    {convolution, "implicit_gemm"},
    {convolution, "implicit_convolve"},
    {convolution, "igemm_"},
    {convolution, "fprop"},
    {convolution, "dgrad"},
    {convolution, "scudnn"},
    {convolution, "winograd"},
    {convolution, "convolution"},
    {convolution, "convolve"},
    {convolution, "conv1d"},
    {convolution, "conv2d"},
    {convolution, "conv3d"},
    {convolution, "conv_depthwise"},
    {convolution, "grouped_conv"},
    {convolution, "naive_conv"},
    {convolution, "asmconv"},
    {convolution, "fft2d_"},

    // cuBLAS, cuBLASLt (nvjet, splitKreduce, its epilogue), CUTLASS, Tensile and hipBLASLt (Cijk), CK, DeepGEMM.
    {matmul, "gemm"},
    {matmul, "gemv"},
    {matmul, "cijk_"},
    {matmul, "nvjet"},
    {matmul, "matmul"},
    {matmul, "cutlass"},
    {matmul, "wgmma"},
    {matmul, "cublas"},
    {matmul, "splitkreduce"},
    {matmul, "_scaled_mm"},
    {matmul, "triton_mm"},

    {elementwise, "cast_transpose"},  // Transformer Engine: to FP8, and its transpose
    {copy, "^memcpy"},
    {copy, "^memset"},
    {copy, "copybuffer"},  // __amd_rocclr_copyBuffer
    {copy, "fillbuffer"},
    {copy, "direct_copy"},
    {copy, "copy_kernel"},
    {copy, "batchedcopy"},  // CatArrayBatchedCopy
    {copy, "copy_device_to_device"},
    {copy, "split_with_sizes"},
    {copy, "chunk_cat"},
    {copy, "transpose"},
    {copy, "nchwtonhwc"},
    {copy, "nhwctonchw"},

    {elementwise, "elementwise"},
    {elementwise, "reduce"},
    {elementwise, "pointwise"},
    {elementwise, "dropout"},
    {elementwise, "rope"},
    {elementwise, "rotary"},
    {elementwise, "silu"},
    {elementwise, "swiglu"},
    {elementwise, "geglu"},
    {elementwise, "gelu"},
    {elementwise, "bias_act"},
    {elementwise, "act_and_mul"},
    {elementwise, "quantize"},
    {elementwise, "amax"},
    {elementwise, "subtensorop"},  // MIOpen
    {elementwise, "optensor"},
    {elementwise, "lpnorm"},

    {attention, "aiter"},  // AMD's library of kernels: what is left of it here is attention
    {norm, "norm"},
};

// Operations of PyTorch that the patterns of kernels do not tell, by their whole names behind "aten::", each between
// blanks.
struct OperationNames {
  KernelClass kernel_class;
  std::string_view names;
};
constexpr OperationNames k_operations[] = {
    {matmul, " mm addmm bmm baddbmm linear mv addmv dot einsum "},
    {copy, " copy_ _foreach_copy_ to _to_copy clone contiguous cat fill_ zero_ zeros index_select gather "},
    {elementwise, " add add_ sub mul mul_ div div_ neg pow sqrt rsqrt exp sin cos sigmoid tanh sum mean where lerp_ "},
    {elementwise, " addcmul_ addcdiv_ "},
};

bool occurs(std::string_view name, std::string_view text) {
  return text.starts_with('^') ? name.starts_with(text.substr(1)) : name.find(text) != std::string_view::npos;
}

}  // namespace

std::span<const KernelPattern> kernel_patterns() { return k_patterns; }

KernelClass classify_kernel(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  for (const KernelPattern& pattern : k_patterns)
    if (occurs(lower, pattern.text) && occurs(lower, pattern.also)) return pattern.kernel_class;
  return other;
}

KernelClass classify_operation(std::string_view name) {
  constexpr std::string_view k_aten = "aten::";
  if (name.starts_with(k_aten)) {
    const std::string word = " " + std::string(name.substr(k_aten.size())) + " ";
    for (const OperationNames& operations : k_operations)
      if (operations.names.find(word) != std::string_view::npos) return operations.kernel_class;
  }
  if (name.starts_with("aten::_foreach_")) return elementwise;
  return classify_kernel(name);
}

}  // namespace tprimat::logs
