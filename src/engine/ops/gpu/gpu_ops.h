#pragma once

// The operations on a GPU, with the contracts of ops/<op>.h: T is float, bf16 or f16, every pointer the device's. They
// are put into a table in op_table.cpp.
#include "ops/op_table.h"

namespace tprimat::engine::gpu {

// c = a·b, or c += a·b; C is T or float.
template <class T, class C>
void matmul(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<C>& c, bool accumulate);

template <class T>
void matmul_fused(const MatrixView<const T>& a, const MatrixView<const T>& b, const Epilogue<T>& epilogue,
                  const MatrixView<T>& c);
template <class T>
void matmul_with_row_sums(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<float>& c,
                          bool accumulate, float* row_sums);

template <class T>
void attention_forward(const AttentionShape& shape, const AttentionInputs<T>& inputs, const HeadRows<T>& y,
                       float* logsumexp);
template <class T>
void attention_backward(const AttentionShape& shape, const AttentionGradient<T>& gradient);

template <class T>
void rope_in_place(const RopeShape& shape, const RopeTable<float>& table, int direction, T* heads);
template <class T>
void head_norm_forward(const HeadNormShape& shape, const T* x, const T* weight, T* y, float* rstd);
template <class T>
void head_norm_backward(const HeadNormShape& shape, const HeadNormGradient<T>& gradient);

template <class T>
void rmsnorm_forward(const RmsNormShape& shape, const T* x, const T* weight, T* y, float* rstd);
template <class T>
void add_rmsnorm_forward(const RmsNormShape& shape, const ResidualSum<T>& residual, const T* weight, T* y, float* rstd);
template <class T>
void rmsnorm_backward(const RmsNormShape& shape, const RmsNormGradient<T>& gradient);
template <class T>
void layernorm_forward(const LayerNormShape& shape, const T* x, const LayerNormWeights<T>& weights,
                       const LayerNormOutput<T>& output);
template <class T>
void add_layernorm_forward(const LayerNormShape& shape, const ResidualSum<T>& residual,
                           const LayerNormWeights<T>& weights, const LayerNormOutput<T>& output);
template <class T>
void layernorm_backward(const LayerNormShape& shape, const LayerNormGradient<T>& gradient);

template <class T>
void swiglu_forward(const SwigluShape& shape, const T* gate_up, T* y);
template <class T>
void swiglu_backward(const SwigluShape& shape, const T* gate_up, const T* dy, T* dgate_up);
template <class T>
void bias_gelu_forward(const GeluShape& shape, const T* x, const T* bias, T* y);
template <class T>
void bias_gelu_backward(const GeluShape& shape, const BiasGeluGradient<T>& gradient);

template <class T>
void embedding_forward(const EmbeddingShape& shape, const int32_t* tokens, const T* table, T* y);
template <class T>
void embedding_backward(const EmbeddingShape& shape, const int32_t* tokens, const T* dy, float* dtable);
void own_rows(int64_t count, const int32_t* rows, int64_t first, int64_t owned, int32_t* own);
template <class T>
void cross_entropy(const CrossEntropyShape& shape, const CrossEntropyArgs<T>& args);
void cross_entropy_statistics(const CrossEntropyShape& shape, const float* logits, const int32_t* targets,
                              const CrossEntropyStatistics<float>& statistics);
void rescale_exponential_sums(int64_t rows, const float* largest, const float* whole_largest, float* sum);
template <class T>
void cross_entropy_gradient(const CrossEntropyShape& shape, const CrossEntropyShardArgs<T>& args);
void add_total(int64_t count, const float* values, double* total);

template <class T>
void add(int64_t count, const T* a, const T* b, T* y);
template <class T>
void add_bias(int64_t rows, int64_t cols, const T* bias, T* x);
template <class T>
void add_column_sums(int64_t rows, int64_t cols, const T* x, float* sums);
template <class T>
void convert(int64_t count, const float* from, T* to);
template <class T>
void draw_normal(int64_t count, const NormalDraw& draw, T* to);
void clear(void* memory, size_t bytes);
void clear_ranges(std::span<const ClearRange<float>> ranges);
void copy(const RowCopy& copy);
template <class T>
void fp8_round(int64_t count, const T* x, Fp8Format format, T* y);

// As in ops/fp8_product.h.
template <class T>
void fp8_quantize(const Fp8Quantize<T>& quantize);
void fp8_next_scales(const Fp8History& history);
template <class C>
void fp8_matmul(const Fp8Product<C>& product);

double sum_of_squares(std::span<const SquaresRange<float>> ranges);
template <class T>
void adamw(const AdamwStep& step, std::span<const AdamwRange<T>> ranges);
template <class T, class M>
void adamw_compact(const AdamwStep& step, uint64_t seed, std::span<const CompactAdamwRange<T, M>> ranges);

template <class T>
const OpTable<T>& gpu_ops();

}  // namespace tprimat::engine::gpu
