#pragma once

#include <cstdint>

#include "device/element.h"
#include "ops/residual.h"

namespace tprimat::engine {

// Root mean square layer normalisation (Zhang & Sennrich, arXiv 1910.07467, eq. 4).
struct RmsNormShape {
  int64_t rows = 0;  // tokens
  int64_t cols = 0;  // hidden size
  double eps = 1e-5;
};

template <class T>
struct RmsNormGradient {
  const T* x;  // what was normalised: after add_rmsnorm_forward its `sum`
  const T* weight;
  const Accum<T>* rstd;
  const T* dy;
  T* dx;              // rows×cols, added to
  Accum<T>* dweight;  // cols, added to
};

template <class T>
struct RmsNormOps {
  // y[r,c] = x[r,c] · rstd[r] · weight[c],  rstd[r] = 1 / sqrt(mean_c x² + eps).  x, y: rows×cols; rstd: rows. y may be
  // x.
  void (*rmsnorm_forward)(const RmsNormShape&, const T* x, const T* weight, T* y, Accum<T>* rstd);
  // The same of the residual stream: sum = a + b, y = rmsnorm(sum), in one visit of the row.
  void (*add_rmsnorm_forward)(const RmsNormShape&, const ResidualSum<T>&, const T* weight, T* y, Accum<T>* rstd);
  // dx[r,c] += rstd·(dy·w)[r,c] − x[r,c]·rstd³/cols·Σ_j (dy·w·x)[r,j];   dweight[c] += Σ_r dy·x·rstd
  void (*rmsnorm_backward)(const RmsNormShape&, const RmsNormGradient<T>&);
};

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

template <class T>
struct HeadNormOps {
  // y[r,h,c] = x[r,h,c] · rstd[r,h] · weight[c],  rstd = 1 / sqrt(mean_c x² + eps); element (r, h, c) is at
  // r·row_stride
  // + h·head_dim + c. weight: head_dim; rstd: rows×heads without gaps. y must not overlap x, which the backward pass
  // needs.
  void (*head_norm_forward)(const HeadNormShape&, const T* x, const T* weight, T* y, Accum<T>* rstd);
  // dx is overwritten; it may be dy where the two strides are equal. dweight: head_dim, added to.
  // dx = rstd·dy·w − x·rstd³/head_dim·Σ_j dy·w·x;   dweight += Σ_{r,h} dy·x·rstd
  void (*head_norm_backward)(const HeadNormShape&, const RmsNormGradient<T>&);
};

}  // namespace tprimat::engine
