#pragma once

#include "planner/parameters.h"
#include "planner/workload.h"

namespace tprimat::planner {

// Seconds.
struct Phases {
  double forward = 0;
  double backward = 0;
  double both() const { return forward + backward; }
};
inline Phases operator+(const Phases& a, const Phases& b) { return {a.forward + b.forward, a.backward + b.backward}; }
inline Phases operator*(const Phases& phases, double factor) {
  return {phases.forward * factor, phases.backward * factor};
}

// What one rank does for one micro-batch in one layer.
struct LayerTime {
  Phases products;       // matrix products of attention and MLP
  Phases attention;      // scores, softmax, sum of values
  Phases elementwise;    // norms, activations, residuals, conversions: bound by memory
  Phases tensor;         // tensor-parallel exchanges that are felt
  Phases context;        // context-parallel exchanges that are felt
  double repeated = 0;   // recomputation, in the backward pass
  Phases total() const;  // without `repeated`
};
// Bytes per element of weights and activations as ranks gather them.
double gathered_bytes(const Workload& workload);

LayerTime time_layer(const Workload& workload, const Machine& machine, const Rates& rates);

// One micro-batch on the ranks that have the embedding, and on those that have head and loss.
struct EndsTime {
  Phases embedding;
  Phases head;
};
EndsTime time_ends(const Workload& workload, const Rates& rates);

struct ProductRate {
  double flops_per_second;
  double saturation;  // half of the rate is reached where one dimension is this and the others are large
  double misaligned;  // share of the rate that is left where a dimension is no multiple of 64 elements
};

// Seconds of 2·rows·columns·depth FLOPs; tiles of 128 x 128 are filled whole.
double time_product(double rows, double columns, double depth, const ProductRate& rate);

}  // namespace tprimat::planner
