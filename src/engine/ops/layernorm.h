#pragma once

#include <cstdint>

#include "device/element.h"
#include "ops/residual.h"

namespace tprimat::engine {

// Layer normalisation (Ba et al., arXiv 1607.06450, eq. 4) of each token over the hidden size.
struct LayerNormShape {
  int64_t rows = 0;  // tokens
  int64_t cols = 0;  // hidden size
  double eps = 1e-5;
};

template <class T>
struct LayerNormWeights {
  const T* weight;  // cols
  const T* bias;    // cols
};

template <class T>
struct LayerNormOutput {
  T* y;            // rows×cols
  Accum<T>* mean;  // rows; kept for the backward pass
  Accum<T>* rstd;  // rows; kept for the backward pass
};

template <class T>
struct LayerNormGradient {
  const T* x;  // what was normalised: after add_layernorm_forward its `sum`
  const T* weight;
  const Accum<T>* mean;
  const Accum<T>* rstd;
  const T* dy;
  T* dx;              // rows×cols, added to
  Accum<T>* dweight;  // cols, added to
  Accum<T>* dbias;    // cols, added to
};

template <class T>
struct LayerNormOps {
  // y[r,c] = (x[r,c] − mean[r]) · rstd[r] · weight[c] + bias[c],  mean = mean_c x,  rstd = 1 / sqrt(mean_c (x − mean)²
  // + eps).  x: rows×cols; y may be x.
  void (*layernorm_forward)(const LayerNormShape&, const T* x, const LayerNormWeights<T>&, const LayerNormOutput<T>&);
  // The same of the residual stream: sum = a + b, y = layernorm(sum), in one visit of the row.
  void (*add_layernorm_forward)(const LayerNormShape&, const ResidualSum<T>&, const LayerNormWeights<T>&,
                                const LayerNormOutput<T>&);
  // With n = (x − mean)·rstd and g = dy·weight:  dx += rstd·(g − mean_c g − n·mean_c(g·n));  dweight += Σ_r dy·n;
  // dbias += Σ_r dy
  void (*layernorm_backward)(const LayerNormShape&, const LayerNormGradient<T>&);
};

}  // namespace tprimat::engine
