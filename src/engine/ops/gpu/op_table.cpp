#include "ops/gpu/gpu_ops.h"

namespace tprimat::engine::gpu {

template <class T>
const OpTable<T>& gpu_ops() {
  static constexpr OpTable<T> table{
      .matmul = &matmul<T, T>,
      .matmul_wide = &matmul<T, float>,
      .matmul_fused = &matmul_fused<T>,
      .matmul_with_row_sums = &matmul_with_row_sums<T>,
      .fuses_gelu = true,
      .attention_forward = &attention_forward<T>,
      .attention_backward = &attention_backward<T>,
      .rope_in_place = &rope_in_place<T>,
      .head_norm_forward = &head_norm_forward<T>,
      .head_norm_backward = &head_norm_backward<T>,
      .rmsnorm_forward = &rmsnorm_forward<T>,
      .add_rmsnorm_forward = &add_rmsnorm_forward<T>,
      .rmsnorm_backward = &rmsnorm_backward<T>,
      .layernorm_forward = &layernorm_forward<T>,
      .add_layernorm_forward = &add_layernorm_forward<T>,
      .layernorm_backward = &layernorm_backward<T>,
      .swiglu_forward = &swiglu_forward<T>,
      .swiglu_backward = &swiglu_backward<T>,
      .bias_gelu_forward = &bias_gelu_forward<T>,
      .bias_gelu_backward = &bias_gelu_backward<T>,
      .embedding_forward = &embedding_forward<T>,
      .embedding_backward = &embedding_backward<T>,
      .own_rows = &own_rows,
      .cross_entropy = &cross_entropy<T>,
      .cross_entropy_statistics = &cross_entropy_statistics,
      .rescale_exponential_sums = &rescale_exponential_sums,
      .cross_entropy_gradient = &cross_entropy_gradient<T>,
      .add_total = &add_total,
      .add = &add<T>,
      .add_wide = &add<float>,
      .add_bias = &add_bias<T>,
      .add_column_sums = &add_column_sums<T>,
      .convert = &convert<T>,
      .draw_normal = &draw_normal<T>,
      .draw_normal_wide = &draw_normal<float>,
      .clear = &clear,
      .clear_ranges = &clear_ranges,
      .copy = &copy,
      .fp8_round = &fp8_round<T>,
      .fp8_quantize = &fp8_quantize<T>,
      .fp8_next_scales = &fp8_next_scales,
      .fp8_matmul = &fp8_matmul<T>,
      .fp8_matmul_wide = &fp8_matmul<float>,
      .sum_of_squares = &sum_of_squares,
      .adamw = &adamw<T>,
      .adamw_compact = &adamw_compact<T, float>,
      .adamw_bf16_moments = &adamw_compact<T, bf16>,
  };
  return table;
}

template const OpTable<float>& gpu_ops();
template const OpTable<bf16>& gpu_ops();
template const OpTable<f16>& gpu_ops();

}  // namespace tprimat::engine::gpu
