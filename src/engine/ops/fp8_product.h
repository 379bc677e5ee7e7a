#pragma once

#include <cstdint>

#include "ops/fp8.h"
#include "ops/matmul.h"

namespace tprimat::engine {

// Products of 8-bit numbers as NVIDIA's Transformer Engine makes them (docs.nvidia.com/deeplearning/transformer-engine;
// Micikevicius et al., arXiv 2209.05433): each tensor has one scale; activations and weights are E4M3, gradients E5M2.
//   y8[i] = fp8(x[i]·scale), rounded to nearest, ties to even, saturated;  x[i] ≈ y8[i]·back,  back = 1/scale
// With current scaling, scale = fp8_largest/amax with amax = max |x| of this very tensor. With delayed scaling it is
// the scale that fp8_next_scales found before this step, which saves reading x twice; amax is noted for the next. A GPU
// has these operations (ops/gpu/gpu_ops.h); a processor, which has no units for such numbers, rounds instead
// (fp8_round).

enum class Fp8Scaling { current, delayed };

// One tensor's place in arrays on the device that hold one float for each tensor.
struct Fp8Scale {
  float* scale = nullptr;
  float* back = nullptr;  // twice 1/scale on GPUs whose 8-bit numbers are AMD's FNUZ: the same bits mean half there
  float* amax = nullptr;  // max |x|, NaN left out; with delayed scaling of all that was quantised since the last step
};

// fp8_quantize. y: rows×cols, y_transposed: cols×rows, both without gaps; one of them may be null. A product wants both
// of its operands with the summed dimension innermost: dx = dy·W reads Wᵀ, dW = dyᵀ·x reads dyᵀ and xᵀ. 16 divides rows
// and cols. NaN stays NaN.
template <class T>
struct Fp8Quantize {
  int64_t rows = 0, cols = 0;
  const T* x = nullptr;
  Fp8Format format = Fp8Format::e4m3;
  Fp8Scaling scaling = Fp8Scaling::current;
  Fp8Scale scale;
  uint8_t* y = nullptr;
  uint8_t* y_transposed = nullptr;
};

// fp8_next_scales. All tensors of a training whose scaling is delayed, once for each step, before the first of its
// quantisations. history: tensors×length, the amaxes of the last `length` steps, zero at first. For each tensor:
//   history[step mod length] = amax, amax = 0;  largest = max history
//   scale = fp8_largest/largest where that is above 0 and finite, else as before;  back = 1/scale
// Ranks that share a tensor's values reduce amax to its maximum over them beforehand.
struct Fp8History {
  int64_t tensors = 0, length = 0;
  int64_t step = 0;
  const float* largest = nullptr;  // fp8_largest of each tensor's format, tensors
  float* history = nullptr;
  float* scale = nullptr;
  float* back = nullptr;
  float* amax = nullptr;
};

// A quantised matrix, row-major without gaps; the columns are what is summed over.
struct Fp8Matrix {
  const uint8_t* data = nullptr;
  int64_t rows = 0, cols = 0;
  Fp8Format format = Fp8Format::e4m3;
  const float* back = nullptr;
};

// fp8_matmul: c[m,n] = Σ_k a[m,k]·b[n,k], or c += that; C is float, bf16 or f16. Not both operands are E5M2; 16 divides
// all sizes.
//   y = x·Wᵀ: a = x, b = W;   dx = dy·W: a = dy, b = Wᵀ;   dW = dyᵀ·x: a = dyᵀ, b = xᵀ
// fast_sums: as Transformer Engine does in the forward pass, sums stay in the matrix units' own accumulator, which on
// NVIDIA's Hopper has fewer bits than a float; without, they go to floats every few terms.
template <class C>
struct Fp8Product {
  Fp8Matrix a, b;
  MatrixView<C> c;
  bool accumulate = false;
  bool fast_sums = false;
};

// Null where the device has no units for 8-bit products.
template <class T>
struct Fp8ProductOps {
  void (*fp8_quantize)(const Fp8Quantize<T>&);
  void (*fp8_next_scales)(const Fp8History&);
  void (*fp8_matmul)(const Fp8Product<T>&);
  void (*fp8_matmul_wide)(const Fp8Product<Accum<T>>&);
};

}  // namespace tprimat::engine
