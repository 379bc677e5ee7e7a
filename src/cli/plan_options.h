#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tprimat {

// What `tprimat plan MODEL` was asked, as written.
struct PlanModelOptions {
  std::string model, framework = "megatron_core", precision = "bf16";
  std::vector<std::string> gpu, gpus, price;
  int64_t sequence_length = 0, global_batch = 0;
  size_t top = 10;
  std::string tokens, scaling, plot;
  double target_days = 0, budget_usd = 0;
  double failure_gpu_hours = 0, restart_minutes = -1, checkpoint_bandwidth_gb = 0, node_noise_percent = -1;
  bool yaml = false, zero_bubble = false;
};

void add_plan_model_options(CLI::App& verb, PlanModelOptions& options);

// Throws Error for options that contradict each other.
void check_plan_options(const PlanModelOptions& options, bool prints_json);

}  // namespace tprimat
