#pragma once

#include <array>
#include <map>

#include "planner/layer_memory.h"
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
  Phases products;       // matrix products of attention and MLP, with those of experts
  Phases attention;      // scores, softmax, sum of values
  Phases elementwise;    // norms, activations, residuals, conversions: bound by memory
  Phases tensor;         // tensor-parallel exchanges that are felt
  Phases context;        // context-parallel exchanges that are felt
  Phases experts;        // exchanges of tokens with the ranks of their experts that are felt
  double repeated = 0;   // recomputation, in the backward pass
  Phases total() const;  // without `repeated`
};
// Bytes per element of weights and activations as ranks gather them.
double gathered_bytes(const Workload& workload);

LayerTime time_layer(const Workload& workload, const Machine& machine, const Rates& rates, LayerKind kind);

// One micro-batch on the ranks that have the embedding, and on those that have head and loss.
struct EndsTime {
  Phases embedding;
  Phases head;
  Phases prediction;  // of further tokens: joining two streams, and the head again (MTP)
};
EndsTime time_ends(const Workload& workload, const Rates& rates);

// Both passes of a linear layer of so many rows.
Phases time_linear(const Workload& workload, double rows, double out, double in, const ProductRate& rate);

// Seconds of 2·rows·columns·depth FLOPs; tiles of 128 x 128 are filled whole.
double time_product(double rows, double columns, double depth, const ProductRate& rate);

// Where a step's seconds go on the rank that all wait for.
struct StepTime {
  double products = 0;
  double attention = 0;
  double elementwise = 0;
  double ends = 0;  // embedding, head, loss
  double recompute = 0;
  double tensor = 0;     // exchanges that are felt: of tensor parallelism,
  double context = 0;    // of context parallelism,
  double experts = 0;    // of expert parallelism,
  double transfers = 0;  // between pipeline stages,
  double data = 0;       // of gradients and sharded weights
  double bubble = 0;     // waiting for the pipeline to fill and drain
  double optimizer = 0;
  double overhead = 0;  // launching, stragglers, what the calibration adds to the whole

  double total() const;
  void scale(double factor);
  double tokens_per_second_per_gpu(const Workload& workload) const;
};

// One micro-batch on one rank: a layer of each kind, and what stands before and behind the layers.
struct PartTimes {
  LayerTime dense, experts;
  bool has_experts = false;
  EndsTime ends;
  const LayerTime& sparse() const { return has_experts ? experts : dense; }  // and what predicts further tokens
};

// For many layouts of one training on one machine: what they have in common is computed once.
class StepClock {
 public:
  StepClock(const Machine& machine, const Rates& rates);  // both must outlive it

  // The workloads may differ in their layouts alone.
  StepTime time(const Workload& workload);
  StepTime least(const Workload& workload);  // nothing is simulated: time() is as much or more, by the bubble alone

 private:
  const PartTimes& parts_of(const Workload& workload);
  StepTime time(const Workload& workload, bool simulate);

  const Machine& machine_;
  const Rates& rates_;
  std::map<std::array<int64_t, 7>, PartTimes> parts_;
  std::array<int64_t, 7> last_key_{};
  const PartTimes* last_ = nullptr;
};

StepTime time_step(const Workload& workload, const Machine& machine, const Rates& rates);

// One step of tprimat's own trainer on a processor whose cores all ranks share (docs/planner.md, "Our own trainer").
// The slowest rank's path takes as long as its threads need, and all ranks together no less than their work over all
// cores: ranks beyond the cores wait for each other's turns, and a pipeline's bubble then costs nothing.
StepTime time_native_step(const Workload& workload, const Machine& machine, const NativeRates& rates);

}  // namespace tprimat::planner
