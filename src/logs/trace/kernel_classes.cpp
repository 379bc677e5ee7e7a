#include "trace/kernel_classes.h"

#include <algorithm>
#include <string>

#include "text/words.h"

namespace tprimat::logs {
namespace {

using enum KernelClass;

constexpr KernelPattern k_patterns[] = {
    {copy, "^memcpy ^memset"},

    // Kernels that Inductor generates are named after all operations fused into them, those of other libraries
    // included, so they are matched first.
    {attention, "^triton_", "attention"},
    {matmul, "^triton_tem_ ^triton_mm"},
    {norm, "^triton_", "norm rsqrt"},
    {softmax, "^triton_", "softmax nll_loss"},
    {embedding, "^triton_", "embedding"},
    {reduction, "^triton_red_ ^triton_per_"},
    {elementwise, "^triton_poi_ ^triton_for_"},

    {embedding, "embedding"},

    // NCCL, RCCL and their replacements: MSCCL, one- and two-shot all-reduce, symmetric memory, DeepEP, NVSHMEM,
    // Transformer Engine's user buffers.
    {collective,
     "nccl rccl msccl all_reduce allreduce all_gather allgather reduce_scatter reducescatter all_to_all alltoall"},
    {collective, "cross_device_reduce multimem_ nvshmem deep_ep internode:: intranode:: userbuffers"},

    // FlashAttention, cuDNN, CK and AITER, Triton.
    {norm, "flashinfer::norm"},
    {attention, "flash fmha attn attention sdpa mha_fwd mha_bwd"},

    {norm, "norm bn_fw bn_bw cudnn::bn_ rowwisemoments ln_fwd ln_bwd"},

    // cuDNN; MIOpen, whose layout changes (batched_transpose_16x32) belong to its convolutions.
    {convolution, "convol conv_ _conv conv1d conv2d conv3d dgrad wgrad winograd miopen implicit_ fprop igemm scudnn"},
    {convolution, "subtensorop batched_transpose_ gridwise_generic_reduce cudnn asmconv fft2d_"},

    // cuBLAS, cuBLASLt (nvjet, splitKreduce, its epilogue), CUTLASS, Tensile and hipBLASLt (Cijk), CK, DeepGEMM.
    {matmul, "gemm gemv cijk xmma nvjet matmul cutlass wgmma cublas splitkreduce _scaled_mm dot_kernel bmm_"},

    {optimizer, "multi_tensor_apply adam lamb_ lambstage lambfunctor fused_sgd fusedsgd muon"},
    {softmax, "softmax cross_entropy crossentropy cross-entropy logsumexp"},
    {reduction, "reduce_ scan sort topk"},

    {elementwise, "elementwise vectorized copy index permute pool nll criterion transpose cast fill dropout scatter"},
    {elementwise, "gather pointwise rotary rope silu swiglu geglu gelu bias_act act_and_mul quantize amax optensor"},
    {elementwise, "split_with_sizes chunk_cat mse_ _loss"},
    {attention, "aiter"},  // AMD's library of kernels: what is left of it here is attention
    {reduction, "reduce"},
    {elementwise, "^triton"},
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
    {elementwise, " add add_ sub mul mul_ div div_ neg pow sqrt rsqrt exp sin cos sigmoid tanh where lerp_ "},
    {elementwise, " addcmul_ addcdiv_ "},
    {reduction, " sum mean max min amax argmax argmin std var norm_except_dim cumsum "},
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
  std::string lower = lower_case(name);
  constexpr std::string_view k_library = "fbgemm";  // of embeddings and permutations; its name tells nothing
  for (size_t at; (at = lower.find(k_library)) != std::string::npos;) lower.erase(at, k_library.size());
  for (const KernelPattern& pattern : k_patterns)
    if (occurs_any(lower, pattern.texts) && (pattern.also.empty() || occurs_any(lower, pattern.also)))
      return pattern.kernel_class;
  return other;
}

KernelClass classify_kernel(std::string_view name, std::string_view operation) {
  const KernelClass by_name = classify_kernel(name);
  if (by_name != other || operation.empty()) return by_name;
  return classify_operation(operation) == attention ? attention : other;
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
