#pragma once

#include "planner/search.h"
#include "spec/model_catalogue.h"

namespace tprimat::planner {

// Llama 3 8B on eight H100 by Megatron-Core, one sequence of 8192 a micro-batch.
inline Workload sample_workload() {
  Workload workload;
  workload.shape = find_counted_model("llama3_8b")->spec;
  workload.sequence_length = 8192;
  workload.global_batch = 128;
  workload.layout.tensor = 2;
  workload.layout.data = 4;
  workload.layout.sharding = Sharding::optimizer;
  workload.family = find_family("megatron_core");
  return workload;
}

inline PlanRequest sample_request(int64_t gpus) {
  const Workload workload = sample_workload();
  PlanRequest request;
  request.shape = workload.shape;
  request.sequence_length = workload.sequence_length;
  request.global_batch = workload.global_batch;
  request.gpus = gpus;
  request.machine = *find_machine("H100");
  request.family = workload.family;
  return request;
}

inline double seconds_of(const Workload& workload, const Machine& machine) {
  return time_step(workload, machine, resolve_rates(built_in_parameters(), machine, workload)).total();
}

}  // namespace tprimat::planner
