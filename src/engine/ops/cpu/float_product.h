#pragma once

#include <string_view>

#include "ops/matmul.h"

namespace tprimat::engine {

// The instructions that the kernel below uses on this CPU: "AVX-512", "AVX2", "NEON"; "" on a CPU without fused
// multiply-add.
std::string_view float_product_instructions();

// c = a·b or c += a·b in float, for all strides of matmul (K. Goto, R. van de Geijn: Anatomy of High-Performance Matrix
// Multiplication, ACM TOMS 34, 2008). Both operands pass through packed panels that fit the caches; with AVX-512,
// rows of a whose elements are adjacent are read where they lie. The order in which an element of c is added up depends
// on the length of the sum and, with AVX2 and NEON, on whether c has more than 1024 columns.
void multiply_float(const MatrixView<const float>& a, const MatrixView<const float>& b, const MatrixView<float>& c,
                    bool accumulate);

}  // namespace tprimat::engine
