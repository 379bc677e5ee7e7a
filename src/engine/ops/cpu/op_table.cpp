#include "ops/op_table.h"

#include "ops/fused_from_parts.h"

namespace tprimat::engine {
namespace {

template <class A>
double sum_all_squares(std::span<const SquaresRange<A>> ranges) {
  double sum = 0;
  for (const SquaresRange<A>& range : ranges) sum += sum_of_squares<A>(range.count, range.values);
  return sum;
}

template <class A>
void clear_all(std::span<const ClearRange<A>> ranges) {
  for (const ClearRange<A>& range : ranges)
    clear_bytes(range.values, static_cast<size_t>(range.count) * sizeof *range.values);
}

template <class T>
void round_to_fp8(int64_t count, const T* x, Fp8Format format, T* y) {
  fp8_round<T>(count, x, format, y);
}

}  // namespace

template <class T>
void matmul_fused(const MatrixView<const T>& a, const MatrixView<const T>& b, const Epilogue<T>& epilogue,
                  const MatrixView<T>& c) {
  matmul_fused_from_parts(cpu_ops<T>(), a, b, epilogue, c);
}

template <class T>
void matmul_with_row_sums(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<Accum<T>>& c,
                          bool accumulate, Accum<T>* row_sums) {
  matmul_with_row_sums_from_parts<T>(cpu_ops<T>(), a, b, {c, accumulate, row_sums});
}

template <class T>
const OpTable<T>& cpu_ops() {
  using A = Accum<T>;
  static constexpr OpTable<T> table{
      .matmul = &matmul<T, T>,
      .matmul_wide = &matmul<T, A>,
      .matmul_fused = &matmul_fused<T>,
      .matmul_with_row_sums = &matmul_with_row_sums<T>,
      .fuses_gelu = false,
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
      .own_rows = &find_own_rows,
      .cross_entropy = &cross_entropy<T>,
      .cross_entropy_statistics = &cross_entropy_statistics<A>,
      .rescale_exponential_sums = &rescale_exponential_sums<A>,
      .cross_entropy_gradient = &cross_entropy_gradient<T>,
      .add_total = &add_total<A>,
      .add = &add<T>,
      .add_wide = &add<A>,
      .add_bias = &add_bias<T>,
      .add_column_sums = &add_column_sums<T>,
      .convert = &convert<T>,
      .draw_normal = &draw_normal<T>,
      .draw_normal_wide = &draw_normal<A>,
      .clear = &clear_bytes,
      .clear_ranges = &clear_all<A>,
      .copy = &copy_rows,
      .fp8_round = &round_to_fp8<T>,
      .fp8_quantize = nullptr,
      .fp8_next_scales = nullptr,
      .fp8_matmul = nullptr,
      .fp8_matmul_wide = nullptr,
      .sum_of_squares = &sum_all_squares<A>,
      .adamw = &adamw_update_all<T>,
      .adamw_compact = &adamw_update_compact<T, A>,
      .adamw_bf16_moments = &adamw_update_compact<T, bf16>,
  };
  return table;
}

template const OpTable<float>& cpu_ops();
template const OpTable<bf16>& cpu_ops();
template const OpTable<f16>& cpu_ops();
template const OpTable<double>& cpu_ops();

}  // namespace tprimat::engine
