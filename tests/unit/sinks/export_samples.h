#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "process/process.h"
#include "sinks/sinks.h"
#include "unit/compare/sample_runs.h"

namespace tprimat::test {

using namespace results;

// Breaks what does not escape it: quotes, separators, lines, markup, a path, a log's own mark, a terminal's code.
inline const std::string k_hostile =
    "a\"b\\c,d\ne{f}=\"g\" </script><b> ../../etc :::MLLOG {\"key\": 1} \x1b[2J '; é\t#";

// Four steps of 0.5 s from 2026-01-01T00:00:00Z on; the third has no loss, the first no gradient norm.
inline RunResult short_run() {
  RunResult r = sample_run("", Platform::nvd, Framework::mega, 0.5, 4).result;
  r.step_times = {2.0, 0.5, 0.5, 0.5};
  r.loss_values = {9.5, 9.25, std::nan(""), 8.75};
  r.learning_rates = {1e-4, 2e-4, 3e-4};
  r.grad_norms = {std::nan(""), 1.5, 1.25, 1.0};
  r.memory_values = {40, 40.5, 40.5, 40.5};
  ReportedFigures reported;
  reported.power_watts_per_gpu = std::vector<double>{std::nan(""), 650.5, 651, 652};
  r.reported = reported;
  r.events = std::vector<RunEvent>{{EventKind::evaluation, {}, 2, {}, {}, 9.125, ""}};
  summarise_run(r, {});
  return r;
}

inline RunResult hostile_run() {
  RunResult r = short_run();
  r.status = RunStatus::failed;
  r.status_reason = k_hostile;
  r.model_info.name = k_hostile;
  r.gpu_info.device_name = k_hostile;
  r.dataset = k_hostile;
  r.framework_version = k_hostile;
  r.parallelism_config.strategy_name = k_hostile;
  r.training_config.optimizer = k_hostile;
  return r;
}

// A mixture of experts whose routing was forced; the third step has no z-loss.
inline RunResult sparse_run() {
  RunResult r = short_run();
  r.model_info.shape->experts.emplace();
  r.model_info.shape->experts->count = 16;
  r.model_info.shape->experts->per_token = 2;
  r.parallelism_config.expert_model_parallel_size = 8;
  r.parallelism_config.expert_tensor_parallel_size = 1;
  r.experts = ExpertFigures{.routing = Routing::balanced, .dispatcher = Dispatcher::deepep, .z_loss = 0.25};
  r.experts->z_loss_values = std::vector<double>{0.5, 0.25, std::nan(""), 0.125};
  return r;
}

// Nothing but a name is known.
inline RunResult empty_run() {
  RunResult r;
  r.status = RunStatus::failed;
  r.model_info.name = "nothing";
  return r;
}

inline void export_results(const std::string& format, const std::filesystem::path& folder,
                           const std::vector<RunResult>& results) {
  LocalRunner runner;
  const auto sink = find_sink(format).open({folder, runner});
  int number = 0;
  for (const RunResult& result : results) {
    const std::string name = "run" + std::to_string(++number);
    sink->add({name, name + ".json", result});
  }
  sink->finish();
  for (const auto& place : sink->places()) EXPECT_TRUE(std::filesystem::exists(place)) << place;
}

inline size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

}  // namespace tprimat::test
