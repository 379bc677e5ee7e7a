#pragma once

#include <span>

#include "ops/adamw.h"
#include "ops/adamw_compact.h"
#include "ops/attention.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/fp8.h"
#include "ops/fp8_product.h"
#include "ops/fused_matmul.h"
#include "ops/gelu.h"
#include "ops/head_norm.h"
#include "ops/layernorm.h"
#include "ops/matmul.h"
#include "ops/memory.h"
#include "ops/normal_draw.h"
#include "ops/rmsnorm.h"
#include "ops/rope.h"
#include "ops/swiglu.h"

namespace tprimat::engine {

// Every operation of a training in number format T as one device does it; contracts and formulas stand in the header of
// each. All pointers point into the device's memory, unless said otherwise. A GPU does the work later, in the order of
// the calls: what a call only reads, it may still be reading when it returns.
template <class T>
struct OpTable {
  using A = Accum<T>;

  void (*matmul)(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<T>& c, bool accumulate);
  void (*matmul_wide)(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<A>& c,
                      bool accumulate);
  void (*matmul_fused)(const MatrixView<const T>& a, const MatrixView<const T>& b, const Epilogue<T>& epilogue,
                       const MatrixView<T>& c);
  void (*matmul_with_row_sums)(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<A>& c,
                               bool accumulate, A* row_sums);
  // Whether gelu belongs into the products around it. A processor adds the bias where it takes the gelu, which visits
  // memory as often and rounds once less.
  bool fuses_gelu;

  void (*attention_forward)(const AttentionShape&, const AttentionInputs<T>&, const HeadRows<T>& y, A* logsumexp);
  void (*attention_backward)(const AttentionShape&, const AttentionGradient<T>&);
  void (*rope_in_place)(const RopeShape&, const RopeTable<A>&, int direction, T* heads);
  void (*head_norm_forward)(const HeadNormShape&, const T* x, const T* weight, T* y, A* rstd);
  void (*head_norm_backward)(const HeadNormShape&, const HeadNormGradient<T>&);

  void (*rmsnorm_forward)(const RmsNormShape&, const T* x, const T* weight, T* y, A* rstd);
  void (*add_rmsnorm_forward)(const RmsNormShape&, const ResidualSum<T>&, const T* weight, T* y, A* rstd);
  void (*rmsnorm_backward)(const RmsNormShape&, const RmsNormGradient<T>&);
  void (*layernorm_forward)(const LayerNormShape&, const T* x, const LayerNormWeights<T>&, const LayerNormOutput<T>&);
  void (*add_layernorm_forward)(const LayerNormShape&, const ResidualSum<T>&, const LayerNormWeights<T>&,
                                const LayerNormOutput<T>&);
  void (*layernorm_backward)(const LayerNormShape&, const LayerNormGradient<T>&);

  void (*swiglu_forward)(const SwigluShape&, const T* gate_up, T* y);
  void (*swiglu_backward)(const SwigluShape&, const T* gate_up, const T* dy, T* dgate_up);
  void (*bias_gelu_forward)(const GeluShape&, const T* x, const T* bias, T* y);
  void (*bias_gelu_backward)(const GeluShape&, const BiasGeluGradient<T>&);

  void (*embedding_forward)(const EmbeddingShape&, const int32_t* tokens, const T* table, T* y);
  void (*embedding_backward)(const EmbeddingShape&, const int32_t* tokens, const T* dy, A* dtable);
  void (*own_rows)(int64_t count, const int32_t* rows, int64_t first, int64_t owned, int32_t* own);
  void (*cross_entropy)(const CrossEntropyShape&, const CrossEntropyArgs<T>&);
  void (*cross_entropy_statistics)(const CrossEntropyShape&, const A* logits, const int32_t* targets,
                                   const CrossEntropyStatistics<A>&);
  void (*rescale_exponential_sums)(int64_t rows, const A* largest, const A* whole_largest, A* sum);
  void (*cross_entropy_gradient)(const CrossEntropyShape&, const CrossEntropyShardArgs<T>&);
  void (*add_total)(int64_t count, const A* values, double* total);

  void (*add)(int64_t count, const T* a, const T* b, T* y);
  void (*add_wide)(int64_t count, const A* a, const A* b, A* y);
  void (*add_bias)(int64_t rows, int64_t cols, const T* bias, T* x);
  void (*add_column_sums)(int64_t rows, int64_t cols, const T* x, A* sums);
  void (*convert)(int64_t count, const A* from, T* to);
  void (*draw_normal)(int64_t count, const NormalDraw& draw, T* to);
  void (*draw_normal_wide)(int64_t count, const NormalDraw& draw, A* to);
  void (*clear)(void* memory, size_t bytes);
  void (*clear_ranges)(std::span<const ClearRange<A>> ranges);
  void (*copy)(const RowCopy& copy);
  void (*fp8_round)(int64_t count, const T* x, Fp8Format format, T* y);

  // Null where the device has no units for 8-bit products.
  void (*fp8_quantize)(const Fp8Quantize<T>& quantize);
  void (*fp8_next_scales)(const Fp8History& history);
  void (*fp8_matmul)(const Fp8Product<T>& product);
  void (*fp8_matmul_wide)(const Fp8Product<A>& product);

  double (*sum_of_squares)(std::span<const SquaresRange<A>> ranges);  // waits for the device
  void (*adamw)(const AdamwStep& step, std::span<const AdamwRange<T>> ranges);
  void (*adamw_compact)(const AdamwStep& step, uint64_t seed, std::span<const CompactAdamwRange<T, A>> ranges);
  void (*adamw_bf16_moments)(const AdamwStep& step, uint64_t seed, std::span<const CompactAdamwRange<T, bf16>> ranges);
};

template <class T>
const OpTable<T>& cpu_ops();

}  // namespace tprimat::engine
