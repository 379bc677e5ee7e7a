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

// y[r,c] = x[r,c] · rstd[r] · weight[c],  rstd[r] = 1 / sqrt(mean_c x² + eps).  x, y: rows×cols; rstd: rows. y may be
// x.
template <class T>
void rmsnorm_forward(const RmsNormShape& shape, const T* x, const T* weight, T* y, Accum<T>* rstd);

// The same of the residual stream: sum = a + b, y = rmsnorm(sum), in one visit of the row.
template <class T>
void add_rmsnorm_forward(const RmsNormShape& shape, const ResidualSum<T>& residual, const T* weight, T* y,
                         Accum<T>* rstd);

template <class T>
struct RmsNormGradient {
  const T* x;  // what was normalised: after add_rmsnorm_forward its `sum`
  const T* weight;
  const Accum<T>* rstd;
  const T* dy;
  T* dx;              // rows×cols, added to
  Accum<T>* dweight;  // cols, added to
};

// dx[r,c] += rstd·(dy·w)[r,c] − x[r,c]·rstd³/cols·Σ_j (dy·w·x)[r,j];   dweight[c] += Σ_r dy·x·rstd
template <class T>
void rmsnorm_backward(const RmsNormShape& shape, const RmsNormGradient<T>& gradient);

}  // namespace tprimat::engine
