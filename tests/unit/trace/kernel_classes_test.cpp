#include "trace/kernel_classes.h"

#include <gtest/gtest.h>

#include <cctype>

namespace tprimat::logs {
namespace {

using enum KernelClass;

struct Case {
  KernelClass wanted;
  std::string_view name;
};

// Names as profilers show them, shortened.
constexpr Case k_cases[] = {
    {matmul, "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64"},
    {matmul, "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTN"},
    {matmul, "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_32x3_tn_align8>"},
    {matmul, "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_execute_kernel__5x_cublas"},
    {matmul, "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>"},
    {matmul, "triton_tem_fused_mm_3"},
    {attention, "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, 64, 4>>"},
    {attention, "void cutlass::device_kernel<flash::FlashAttnFwdSm90<cutlass::gemm::GemmShape>>"},
    {attention, "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16"},
    {attention, "_ZN7ck_tile6kentryIN7ck_tile13FmhaFwdKernel"},
    {attention, "attn_fwd"},
    {attention, "aiter::fmha_bwd_hd128_bf16_causal_a32"},
    {attention, "triton_tem_fused_flex_attention_2"},
    {norm, "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>"},
    {norm, "void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel"},
    {norm, "triton_red_fused_add_mean_mul_pow_rsqrt_0"},
    {norm, "void at::native::batch_norm_backward_kernel<float>"},
    {norm, "void layer_norm::ln_bwd_finalize_kernel<layer_norm::Kernel_traits_finalize>"},
    {norm, "flashinfer::norm::FusedAddRMSNormKernel"},
    {optimizer, "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>"},
    {optimizer, "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4>>"},
    {collective, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"},
    {collective, "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)"},
    {collective, "rccl_main_kernel"},
    {collective, "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>"},
    {collective, "multimem_all_reduce_kernel"},
    {copy, "Memcpy HtoD (Pageable -> Device)"},
    {copy, "Memset (Device)"},
    {elementwise, "__amd_rocclr_copyBuffer"},
    {elementwise,
     "void at::native::elementwise_kernel<128, 2, "
     "gpu_kernel_impl_nocast<direct_copy_kernel_cuda(TensorIteratorBase&)>"},
    {elementwise, "void at::native::(anonymous namespace)::CatArrayBatchedCopy_aligned16_contig<OpaqueType<2u>>"},
    {convolution, "batched_transpose_16x64_pack_1x4_ediv_1x2_half"},
    {softmax, "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>"},
    {reduction, "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float>"},
    {softmax, "triton_per_fused__softmax_0"},
    {elementwise, "triton_poi_fused__unsafe_view_mul_silu_2"},
    {elementwise, "triton_poi_fused_all_gather_into_tensor_wait_tensor_4"},
    {elementwise, "void at::native::vectorized_elementwise_kernel<4, {lambda(float)#1}>"},
    {reduction, "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>"},
    {elementwise, "void transformer_engine::cast_transpose_kernel<__nv_bfloat16>"},
    {convolution, "igemm_fwd_gtcx2_nhwc_bf16_bx0_ex1_bt32x256x32"},
    {convolution, "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32"},
    {convolution, "cudnn_ampere_scudnn_128x64_relu_xregs_large_nn_v1"},
    {elementwise, "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16>"},
    {embedding, "void split_embedding_codegen_forward_unweighted_kernel<float, float, float, long, 128>"},
    {elementwise, "void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*)"},
    {collective, "void dpsk::ep::internode::combine<false, 8, __nv_bfloat16, 8, 2, 16, 2>"},
    {elementwise, "void at::native::vectorized_elementwise_kernel<4, at::native::add(Iterator&)::{lambda(float)#1}>"},
    {reduction, "triton_red_fused_sum_1"},
    {other, "bwd_kernel_fuse"},
    {other, ""},
};

TEST(KernelClasses, FollowTheNames) {
  for (const Case& each : k_cases)
    EXPECT_EQ(enum_name(classify_kernel(each.name)), enum_name(each.wanted)) << each.name;
}

TEST(KernelClasses, TakeAttentionFromTheOperationWhereTheNameSaysNothing) {
  EXPECT_EQ(classify_kernel("bwd_kernel_fuse", "aten::_flash_attention_backward"), attention);
  EXPECT_EQ(classify_kernel("bwd_kernel_fuse", "aten::mm"), other);
  EXPECT_EQ(classify_kernel("Cijk_Alik_Bljk_BBS", "aten::_flash_attention_backward"), matmul);
}

TEST(KernelClasses, PatternsAreInLowerCaseAndCanMatch) {
  for (const KernelPattern& pattern : kernel_patterns()) {
    for (const char c : pattern.texts) EXPECT_FALSE(std::isupper(static_cast<unsigned char>(c))) << pattern.texts;
    EXPECT_FALSE(pattern.texts.empty());
  }
}

}  // namespace
}  // namespace tprimat::logs
