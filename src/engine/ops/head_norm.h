#pragma once

#include <cstdint>

#include "device/element.h"

namespace tprimat::engine {

// Root mean square normalisation (Zhang & Sennrich, arXiv 1910.07467, eq. 4) of every head of queries or keys on its
// own, with one weight for all heads (Qwen 3, arXiv 2505.09388, section 2: QK-Norm).
struct HeadNormShape {
  int64_t rows = 0;          // tokens
  int64_t heads = 0;         // consecutive heads of a row
  int64_t head_dim = 0;      // channels of a head
  int64_t x_row_stride = 0;  // elements from one token to the next: x and dx
  int64_t y_row_stride = 0;  // the same of y and dy
  double eps = 1e-6;
};

// y[r,h,c] = x[r,h,c] · rstd[r,h] · weight[c],  rstd = 1 / sqrt(mean_c x² + eps); element (r, h, c) is at r·row_stride
// + h·head_dim + c. weight: head_dim; rstd: rows×heads without gaps. y must not overlap x, which the backward pass
// needs.
template <class T>
void head_norm_forward(const HeadNormShape& shape, const T* x, const T* weight, T* y, Accum<T>* rstd);

template <class T>
struct HeadNormGradient {
  const T* x;
  const T* weight;
  const Accum<T>* rstd;
  const T* dy;
  T* dx;              // overwritten; may be dy where the two strides are equal
  Accum<T>* dweight;  // head_dim, added to
};

// dx = rstd·dy·w − x·rstd³/head_dim·Σ_j dy·w·x;   dweight += Σ_{r,h} dy·x·rstd
template <class T>
void head_norm_backward(const HeadNormShape& shape, const HeadNormGradient<T>& gradient);

}  // namespace tprimat::engine
