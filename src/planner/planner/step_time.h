#pragma once

#include <array>
#include <map>
#include <memory>

#include "planner/layer_time.h"

namespace tprimat::planner {

// Where a step's seconds go on the rank that all wait for.
struct StepTime {
  double products = 0;
  double attention = 0;
  double elementwise = 0;
  double ends = 0;  // embedding, head, loss
  double recompute = 0;
  double tensor = 0;     // exchanges that are felt: of tensor parallelism,
  double context = 0;    // of context parallelism,
  double transfers = 0;  // between pipeline stages,
  double data = 0;       // of gradients and sharded weights
  double bubble = 0;     // waiting for the pipeline to fill and drain
  double optimizer = 0;
  double overhead = 0;  // launching, stragglers, what the calibration adds to the whole

  double total() const;
  void scale(double factor);
  double tokens_per_second_per_gpu(const Workload& workload) const;
};

// For many layouts of one training on one machine: what they have in common is computed once.
class StepClock {
 public:
  StepClock(const Machine& machine, const Rates& rates);  // both must outlive it
  ~StepClock();

  // The workloads may differ in their layouts alone.
  StepTime time(const Workload& workload);
  StepTime least(const Workload& workload);  // nothing is simulated: time() is as much or more, by the bubble alone

 private:
  struct Parts;
  const Parts& parts_of(const Workload& workload);
  StepTime time(const Workload& workload, bool simulate);

  const Machine& machine_;
  const Rates& rates_;
  std::map<std::array<int64_t, 5>, std::unique_ptr<Parts>> parts_;
  std::array<int64_t, 5> last_key_{};
  const Parts* last_ = nullptr;
};

StepTime time_step(const Workload& workload, const Machine& machine, const Rates& rates);

}  // namespace tprimat::planner
