#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "compare/comparison.h"
#include "compare/load_runs.h"
#include "result/summary.h"

namespace tprimat::results {

inline ModelSpec small_llama() {
  ModelSpec shape;
  shape.name = "llama";
  shape.num_layers = 4;
  shape.hidden_size = 512;
  shape.ffn_hidden_size = 1024;
  shape.num_attention_heads = 8;
  shape.num_key_value_heads = 8;
  shape.head_dim = 64;
  shape.vocab_size = 32000;
  shape.max_position_embeddings = 4096;
  return shape;
}

// 8 devices, GBS 64, SL 2048; without series.
inline RunResult sample_facts(Platform platform, Framework framework) {
  RunResult r;
  r.platform = platform;
  r.framework = framework;
  r.timestamp = "2026-01-01T00:00:00Z";
  r.model_info.name = "llama";
  r.model_info.shape = small_llama();
  r.precision = Precision::bf16;
  r.gpu_info.device_name = platform == Platform::amd ? "AMD Instinct MI300X" : "NVIDIA H100 80GB HBM3";
  r.gpu_info.device_count = 8;
  r.training_config.global_batch_size = 64;
  r.training_config.sequence_length = 2048;
  r.training_config.num_gpus = 8;
  r.memory_metrics.peak_memory_allocated_gb = 40;
  return r;
}

// A complete run of `steps` steps of about `step_time` seconds with a little deterministic noise, another for each
// file.
inline LoadedRun sample_run(const std::string& file, Platform platform, Framework framework, double step_time,
                            size_t steps = 60) {
  RunResult r = sample_facts(platform, framework);
  r.training_config.max_steps = static_cast<int64_t>(steps);
  double phase = 0;
  for (const char c : file) phase = 1.3 * phase + c;
  for (size_t i = 0; i < steps; ++i) {
    const double wave = std::sin(static_cast<double>(i) * 1.7);
    const double noise = 0.0019 * wave + 0.0004 * std::sin(static_cast<double>(i) * 2.3 + phase);
    r.step_times.push_back(step_time * (i == 0 ? 5 : 1 + noise));
    r.loss_values.push_back(4 + 7 * std::exp(-static_cast<double>(i) / 20) + 0.02 * wave);
    r.learning_rates.push_back(3e-4 * std::min(1.0, static_cast<double>(i + 1) / 10));
  }
  summarise_run(r, {});
  return {file, r};
}

// The same work once more: other noise of a step and other luck of the run, both about a tenth of a percent.
inline LoadedRun noisy_run(const std::string& file, Platform platform, Framework framework, double step_time,
                           uint64_t seed) {
  LoadedRun run = sample_run(file, platform, framework, step_time);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const double luck = 1 + 0.001 * normal(random);
  for (size_t i = 1; i < run.result.step_times.size(); ++i)
    run.result.step_times[i] = step_time * luck * (1 + 0.001 * normal(random));
  summarise_run(run.result, {});
  return run;
}

// After a change of what the figures follow from.
inline LoadedRun again(LoadedRun run) {
  summarise_run(run.result, stored_options(run.result));
  return run;
}

// One of each vendor; the second is `ratio` times as fast.
inline LoadedRuns two_runs(double ratio) {
  return {{sample_run("a.json", Platform::nvd, Framework::nemo, ratio),
           sample_run("b.json", Platform::amd, Framework::prim, 1.0)},
          {}};
}

}  // namespace tprimat::results
