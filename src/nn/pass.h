#pragma once

#include <cstdint>

#include "device/arena.h"
#include "nn/parameters.h"
#include "ops/element.h"

namespace tprimat {

// One micro batch.
struct BatchShape {
  int64_t sequences = 0;
  int64_t sequence_length = 0;
  int64_t tokens() const { return sequences * sequence_length; }
};

// What a forward or backward pass works with: the flat vectors of weights and gradients, and the arena that holds
// activations. T is float, bf16, or double for the reference.
template <class T>
struct Pass {
  const Arena& arena;
  const T* weights;
  Accum<T>* gradients;
};

// Everything a layer needs while it is being built: where its weights and buffers will live.
struct Plan {
  ParameterTable& parameters;
  ArenaPlan& arena;
  BatchShape batch;
};

}  // namespace tprimat
