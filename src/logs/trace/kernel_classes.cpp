#include "trace/kernel_classes.h"

#include <algorithm>
#include <string>

namespace tprimat::logs {
namespace {

using enum KernelClass;

constexpr KernelPattern k_patterns[] = {
    // Kernels that Inductor generates are named after all operations fused into them, those of other libraries
    // included, so they are matched first.
    {attention, "^triton_", "attention"},
    {matmul, "^triton_tem_"},
    {norm, "^triton_", "layer_norm rms_norm rsqrt"},
    {softmax_loss, "^triton_", "softmax nll_loss"},
    {elementwise, "^triton_poi_ ^triton_red_ ^triton_per_ ^triton_for_"},

    // NCCL, RCCL and their replacements: MSCCL, one- and two-shot all-reduce, symmetric memory, DeepEP, NVSHMEM,
    // Transformer Engine's user buffers.
    {collective,
     "nccl rccl msccl all_reduce allreduce all_gather allgather reduce_scatter reducescatter all_to_all alltoall"},
    {collective, "cross_device_reduce multimem_ nvshmem deep_ep userbuffers"},

    {norm, "layernorm layer_norm rmsnorm rms_norm batchnorm batch_norm groupnorm group_norm rowwisemoments"},
    {norm, "instance_norm cudnn::bn_ ln_fwd ln_bwd normalization:: gammabeta"},
    {attention, "flash fmha attn attention sdpa mha_fwd mha_bwd"},
    {optimizer, "adam multi_tensor_apply fused_sgd fusedsgd lambstage muon"},
    {softmax_loss, "softmax cross_entropy crossentropy nll_loss logsumexp mse_kernel mse_backward _loss"},
    {convolution, "implicit_gemm implicit_convolve igemm_ fprop dgrad scudnn winograd convolution convolve"},
    {convolution, "conv1d conv2d conv3d conv_depthwise grouped_conv naive_conv asmconv fft2d_"},

    // cuBLAS, cuBLASLt (nvjet, splitKreduce, its epilogue), CUTLASS, Tensile and hipBLASLt (Cijk), CK, DeepGEMM.
    {matmul, "gemm gemv cijk_ nvjet matmul cutlass wgmma cublas splitkreduce _scaled_mm triton_mm"},

    {elementwise, "cast_transpose"},  // Transformer Engine: to FP8, and its transpose
    {copy, "^memcpy ^memset copybuffer fillbuffer direct_copy copy_kernel"},  // AMD: __amd_rocclr_copyBuffer
    {copy, "batchedcopy copy_device_to_device split_with_sizes chunk_cat"},   // PyTorch: CatArrayBatchedCopy
    {copy, "transpose nchwtonhwc nhwctonchw"},

    {elementwise, "elementwise reduce pointwise dropout rope rotary silu swiglu geglu gelu bias_act act_and_mul"},
    {elementwise, "quantize amax subtensorop optensor lpnorm"},  // MIOpen: SubTensorOp
    {attention, "aiter"},  // AMD's library of kernels: what is left of it here is attention
    {norm, "norm"},
};

// Operations of PyTorch that the kernel patterns do not match, by their whole names behind "aten::", each between
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

bool occurs_any(std::string_view name, std::string_view texts) {
  while (!texts.empty()) {
    const std::string_view text = texts.substr(0, texts.find(' '));
    const bool begins = text.starts_with('^');
    if (begins ? name.starts_with(text.substr(1)) : name.find(text) != std::string_view::npos) return true;
    texts.remove_prefix(std::min(texts.size(), text.size() + 1));
  }
  return false;
}

}  // namespace

std::span<const KernelPattern> kernel_patterns() { return k_patterns; }

KernelClass classify_kernel(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  for (const KernelPattern& pattern : k_patterns)
    if (occurs_any(lower, pattern.texts) && (pattern.also.empty() || occurs_any(lower, pattern.also)))
      return pattern.kernel_class;
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
