#pragma once

#include <optional>
#include <string>

#include "extract/read_log.h"
#include "result/run_result.h"

namespace tprimat::logs {

// What the user knows and the log does not say. Empty: nothing.
struct KnownFacts {
  std::optional<Platform> platform;
  std::string model, device;
  std::optional<int64_t> devices, global_batch_size, sequence_length;
  std::optional<Precision> precision;
  std::optional<int64_t> fixed_warmup_steps;
};

// One log as a result, judged: of steps that were repeated after a restart the last attempt counts; steps whose time
// holds something else are labelled and left out of the steady state; a log that ends before its last step, or in a
// failure, is no complete run. What the user knows is used where the log is silent; where it contradicts, the log wins
// and a warning says so.
RunResult make_result(const ReadLog& read, const std::string& path, const KnownFacts& known);

// A name that no catalogue knows leaves figures out, and may be a slip.
void warn_about_unknown_names(RunResult& result, const KnownFacts& known);

// Calls copy(fact, field) with each fact of a log that a result has a field for, in the same meaning, beside those that
// both have as TrainingSettings.
template <class Facts, class Result, class Copy>
void for_each_shared_fact(Facts& facts, Result& result, Copy&& copy) {
  copy(facts.framework, result.framework);
  copy(facts.framework_version, result.framework_version);
  copy(facts.precision, result.precision);
  copy(facts.dataset, result.dataset);
  copy(facts.gpu_count, result.gpu_info.device_count);
  copy(facts.pytorch_version, result.gpu_info.pytorch_version);
  copy(facts.stack_version, result.gpu_info.software_version);
  auto& layout = result.parallelism_config;
  copy(facts.tensor_parallel, layout.tensor_model_parallel_size);
  copy(facts.pipeline_parallel, layout.pipeline_model_parallel_size);
  copy(facts.data_parallel, layout.data_parallel_size);
  copy(facts.context_parallel, layout.context_parallel_size);
  copy(facts.accumulation_steps, layout.gradient_accumulation_steps);
}

}  // namespace tprimat::logs
