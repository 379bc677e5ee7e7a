#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tprimat {

// Settings of a training that a result states, and a log may.
struct TrainingSettings {
  std::optional<int64_t> max_steps;                        // optimizer steps
  std::optional<int64_t> global_batch_size;                // sequences per step
  std::optional<int64_t> micro_batch_size;                 // sequences per forward pass and rank
  std::optional<int64_t> sequence_length;                  // tokens
  std::optional<double> learning_rate, min_learning_rate;  // at the peak; at the end of the decay
  std::optional<double> weight_decay, clip_grad_norm;
  std::optional<int64_t> warmup_steps;  // of the learning rate
  std::optional<int64_t> seed;          // of weights and data
  std::optional<std::string> optimizer, schedule, recompute;
};

}  // namespace tprimat
