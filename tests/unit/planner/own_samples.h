#pragma once

#include "planner/memory.h"
#include "planner/own_results.h"
#include "planner_samples.h"

namespace tprimat::planner {

inline ProcessorFacts two_cores() {
  ProcessorFacts facts;
  facts.name = "Sample CPU", facts.threads = 2;
  facts.peak_16 = 800e9, facts.peak_32 = 200e9;
  facts.memory_bandwidth = 20e9, facts.memory_bytes = 32e9;
  return facts;
}

inline Workload own_workload() {
  Workload w;
  ModelSpec& m = w.shape;
  m.num_layers = 8, m.hidden_size = 256, m.ffn_hidden_size = 768;
  m.num_attention_heads = 4, m.num_key_value_heads = 2, m.head_dim = 64;
  m.vocab_size = 8192, m.max_position_embeddings = 1024;
  w.sequence_length = 256, w.global_batch = 16;
  w.layout.micro_batch = 2;
  w.layout.sequence_parallel = false;
  w.family = find_family("native");
  return w;
}

// A result of our own trainer as `tprimat run` writes it.
inline NamedResult own_result(const Workload& w, double seconds, const std::string& path = "out/a.json") {
  RunResult r;
  r.platform = Platform::cpu, r.framework = Framework::native, r.precision = Precision::bf16;
  r.model_info.shape = w.shape;
  r.gpu_info.device_name = "Sample CPU", r.gpu_info.device_count = w.layout.num_gpus();
  r.environment["cpu_threads_usable"] = "2";
  r.training_config.global_batch_size = w.global_batch, r.training_config.micro_batch_size = w.layout.micro_batch;
  r.training_config.sequence_length = w.sequence_length;
  r.parallelism_config.tensor_model_parallel_size = w.layout.tensor;
  r.parallelism_config.pipeline_model_parallel_size = w.layout.pipeline;
  r.parallelism_config.data_parallel_size = w.layout.data;
  const auto ranks = static_cast<double>(w.layout.num_gpus());
  r.derived.peak = PeakInfo{"measured:cpu:bf16", 800e9 / ranks, "", 20e9 / ranks, {}};
  r.statistics = StepStatistics{};
  r.statistics->median = seconds;
  r.memory_metrics.peak_memory_allocated_gb = plan_native_memory(w).total() * 1e-9;
  return {path, r};
}

inline NamedResult sample_gpu_result(const std::string& device, double seconds) {
  NamedResult named = own_result(sample_workload(), seconds);
  named.result.platform = Platform::nvd, named.result.framework = Framework::mega;
  named.result.gpu_info.device_name = device;
  return named;
}

}  // namespace tprimat::planner
