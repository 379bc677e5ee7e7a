#pragma once

#include <cmath>

#include "result/run_result.h"

namespace tprimat {

inline ModelSpec tiny_shape() {
  ModelSpec shape;
  shape.name = "tiny";
  shape.full_name = "Tiny";
  shape.num_layers = 2;
  shape.hidden_size = 64;
  shape.ffn_hidden_size = 128;
  shape.num_attention_heads = 4;
  shape.num_key_value_heads = 2;
  shape.head_dim = 16;
  shape.vocab_size = 1000;
  shape.max_position_embeddings = 128;
  return shape;
}

inline void add_steps(RunResult& result, size_t steps) {
  for (size_t i = 0; i < steps; ++i) {
    result.step_times.push_back(i == 0 ? 5.0 : 1.0);
    result.loss_values.push_back(7.0 - 0.01 * static_cast<double>(i));
    result.learning_rates.push_back(1e-4);
    result.memory_values.push_back(i == 3 ? 2.5 : 2.0);
  }
  StepTelemetry& sensors = result.step_telemetry.emplace();
  sensors.lowest_clock_hz.emplace(steps, 1.98e9).at(0) = std::nan("");
  sensors.throttle_shares = {{"thermal", std::vector<double>(steps, 0.25)}};
}

// A small complete run whose figures can be worked out by hand: first step 5 s, then 1 s each; 8 sequences of 128
// tokens on 2 devices.
inline RunResult sample_result(size_t steps = 21) {
  RunResult result;
  result.platform = Platform::nvd;
  result.framework = Framework::native;
  result.timestamp = "2026-01-01T00:00:00Z";
  result.model_info.name = "tiny";
  result.model_info.shape = tiny_shape();
  result.precision = Precision::bf16;
  result.gpu_info.device_name = "NVIDIA H100 80GB HBM3";
  result.gpu_info.device_count = 2;
  result.training_config.max_steps = static_cast<int64_t>(steps);
  result.training_config.global_batch_size = 8;
  result.training_config.sequence_length = 128;
  result.training_config.num_gpus = 2;
  add_steps(result, steps);
  return result;
}

}  // namespace tprimat
