#pragma once

#include "ops/matmul.h"

namespace tprimat::engine {

// c = a·b or c += a·b on a CPU with has_bf16_pairs(), by tiles where it has_amx(); C is float, or bf16 without
// `accumulate`. No dimension is zero. All strides as in matmul. K. Goto, R. van de Geijn: Anatomy of High-Performance
// Matrix Multiplication, ACM TOMS 34 (2008): operands are packed block by block, one for all threads, of the other one
// what a core's second-level cache holds. `squares`, where it is given: Σ c² (C float, has_amx()).
template <class C>
void multiply_bf16(const MatrixView<const bf16>& a, const MatrixView<const bf16>& b, const MatrixView<C>& c,
                   bool accumulate, double* squares = nullptr);
// c = epilogue(a·b), on a CPU with has_amx(), where the width of an activation is a multiple of k_activation_multiple.
inline constexpr int64_t k_activation_multiple = 32;
bool can_multiply_by_amx(const Epilogue<bf16>& epilogue, int64_t cols);
void multiply_bf16(const MatrixView<const bf16>& a, const MatrixView<const bf16>& b, const Epilogue<bf16>& epilogue,
                   const MatrixView<bf16>& c);

}  // namespace tprimat::engine
