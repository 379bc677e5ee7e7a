#pragma once

#include "ops/gelu.h"
#include "ops/matmul.h"

namespace tprimat::engine {

// What a product does to its result before it is stored, which spares reading it again. Vectors are indexed by the
// result's column; matrices are row-major, rows×cols of the result, without gaps. gelu as in ops/gelu.h.
template <class T>
struct Epilogue {
  const T* bias = nullptr;        // added to every row
  T* before_gelu = nullptr;       // where it is given: before_gelu = a·b + bias, c = gelu(before_gelu)
  const T* gelu_input = nullptr;  // c = (a·b) ⊙ gelu'(gelu_input); not together with the others
};

// c = epilogue(a·b).
//   forward of a GPT's MLP:  inner = gelu(up), up = x·Wᵀ + bias        {bias, up, nullptr}
//   backward:                dup = (dy·W) ⊙ gelu'(up)                  {nullptr, nullptr, up}
//   any layer with a bias:   y = x·Wᵀ + bias                           {bias}
// A device may round a·b + bias to T before it goes into gelu, or after.
template <class T>
void matmul_fused(const MatrixView<const T>& a, const MatrixView<const T>& b, const Epilogue<T>& epilogue,
                  const MatrixView<T>& c);

// c = a·b, or c += a·b; row_sums[r] += Σ_k a[r,k]. With a = dyᵀ: the gradients of a weight and of its bias.
template <class T>
void matmul_with_row_sums(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<Accum<T>>& c,
                          bool accumulate, Accum<T>* row_sums);

}  // namespace tprimat::engine
