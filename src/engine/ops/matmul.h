#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "device/element.h"
#include "spec/names.h"

namespace tprimat::engine {

// A matrix in memory: element (r, c) is at data[r·row_stride + c·col_stride]; one of the strides is 1.
// In blocks, in which fused activations and gradients of heads may be (MatmulOps::has_blocks,
// AttentionOps::finishes_gradients), a matrix lies as row-major blocks of 32×32 elements, one row of blocks after the
// other, without gaps; 32 divides rows and cols. The strides are those of the ordinary matrix; the first of every 32
// rows begins where it would begin there.
template <class T>
struct MatrixView {
  T* data;
  int64_t rows;
  int64_t cols;
  int64_t row_stride;
  int64_t col_stride;
  bool in_blocks = false;
};
inline constexpr int64_t k_block_side = 32;

// Row-major rows×cols without gaps.
template <class T>
MatrixView<T> matrix(T* data, int64_t rows, int64_t cols) {
  return {data, rows, cols, cols, 1};
}
template <class T>
MatrixView<const T> read_only(const MatrixView<T>& m) {
  return {m.data, m.rows, m.cols, m.row_stride, m.col_stride, m.in_blocks};
}
template <class T>
MatrixView<T> transposed(const MatrixView<T>& m) {
  return {m.data, m.cols, m.rows, m.col_stride, m.row_stride, m.in_blocks};
}

// What a product does to its result before it is stored, which spares reading it again. Vectors are indexed by the
// product's column; matrices are row-major, rows×cols of the product, without gaps. gelu as in ops/gelu.h, silu as in
// ops/swiglu.h. One of the four activations at most. What a forward product keeps for the backward one, in before_gelu
// or in the c of a swiglu, may be in an order of the device's own: MatmulOps::activate_kept.
template <class T>
struct Epilogue {
  const T* bias = nullptr;        // added to every row; not together with gelu_input or swiglu_input
  T* before_gelu = nullptr;       // where it is given: before_gelu = a·b + bias, c = gelu(before_gelu)
  const T* gelu_input = nullptr;  // c = (a·b) ⊙ gelu'(gelu_input)
  T* swiglu = nullptr;            // rows × cols/2: c = [gate, up] = a·b + bias, swiglu = silu(gate) ⊙ up
  // rows × 2·cols, as is c: swiglu_input = [gate, up], c = [dgate, dup]; a·b is the gradient of silu(gate) ⊙ up
  const T* swiglu_input = nullptr;
  // What is kept for the backward product is what the gradient is multiplied by: gelu' in before_gelu,
  // [silu'(gate) ⊙ up, silu(gate)] in the c of a swiglu. gelu_input and swiglu_input then hold these.
  bool keeps_slopes = false;
  // The activation's output (`swiglu`, or c of a gelu) or the gradient of its input (c) lies in blocks; 32 divides its
  // rows.
  bool to_blocks = false;
};

template <class T>
struct MatmulOps {
  // c = a·b, or c += a·b. Products of T are added up in Accum<T>; c is row-major.
  // Fast form: our own for float (cpu/float_product.h), and for bf16 on a CPU with AMX or AVX512-BF16
  // (cpu/bf16_product.h); else oneDNN, which picks the kernel for this CPU; measured in docs/decisions.md. Where
  // oneDNN has none (f16 without AVX512-FP16, bf16 below AVX-512), the inputs are widened to float, in which the
  // product of two is exact, and multiplied there; the float copies are kept from one call to the next. Called from one
  // thread at a time.
  void (*matmul)(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<T>& c, bool accumulate);
  void (*matmul_wide)(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<Accum<T>>& c,
                      bool accumulate);
  // c = epilogue(a·b).
  //   forward of a GPT's MLP:  inner = gelu(up), up = x·Wᵀ + bias        {bias, up, nullptr}
  //   backward:                dup = (dy·W) ⊙ gelu'(up)                  {nullptr, nullptr, up}
  //   forward of a Llama's:    inner = silu(gate) ⊙ up, [gate, up] = x·Wᵀ + bias   {.bias, .swiglu = inner}
  //   backward:                [dgate, dup] from dinner = dy·W                     {.swiglu_input = [gate, up]}
  //   any layer with a bias:   y = x·Wᵀ + bias                           {bias}
  // A device may round a·b + bias to T before it goes into gelu, or after.
  void (*matmul_fused)(const MatrixView<const T>& a, const MatrixView<const T>& b, const Epilogue<T>& epilogue,
                       const MatrixView<T>& c);
  // c = a·b, or c += a·b; row_sums[r] += Σ_k a[r,k]. With a = dyᵀ: the gradients of a weight and of its bias.
  void (*matmul_with_row_sums)(const MatrixView<const T>& a, const MatrixView<const T>& b,
                               const MatrixView<Accum<T>>& c, bool accumulate, Accum<T>* row_sums);
  // An activation is fused into the products around it if its width is a multiple of this; 0: never. A GPU fuses the
  // gelu only, a processor with AMX both, in bf16. Otherwise a processor adds the bias in the same pass over memory as
  // the gelu, which costs no further pass and one rounding less than adding it in the product.
  int64_t fused_gelu_multiple = 0, fused_swiglu_multiple = 0;
  // Whether fused products may keep slopes, which spares the backward one the exponentials; the activation cannot be
  // made of them again.
  bool keeps_slopes = false;
  // y: the activation again from what a fused forward product kept other than slopes, where that is in an order of the
  // device's own; null: it is a matrix as others, with its bias.
  void (*activate_kept)(bool is_gated, const T* kept, const MatrixView<T>& y) = nullptr;
  // Whether operands may lie in blocks: products that read them would pack them into such blocks anyway. They read them
  // as a, as the transpose of a, and as the b of a product with the transpose of another matrix.
  bool has_blocks = false;
  // The same as matmul_wide, where no dimension is zero; returns Σ c² of what c then holds, added up in an order that
  // depends on the number of threads alone. Null: this device would have to read c again for it.
  double (*matmul_wide_squares)(const MatrixView<const T>& a, const MatrixView<const T>& b,
                                const MatrixView<Accum<T>>& c, bool accumulate) = nullptr;
};

// What multiplies numbers of this precision here: "own, AMX", "own, AVX512-BF16", "own, AVX-512", "own, AVX2",
// "own, NEON", or "oneDNN".
std::string product_kernels(Precision precision);

// "onednn" -> "2.6.3": the libraries that products on the processor are made with, as compiled.
std::map<std::string, std::string> library_versions();

}  // namespace tprimat::engine
