#pragma once

#include <optional>
#include <string>
#include <vector>

#include "extract/read_log.h"
#include "result/peak.h"
#include "result/run_result.h"

namespace tprimat::logs {

// Facts from the user that the log may lack. Empty: not given.
struct KnownFacts {
  std::optional<Platform> platform;
  std::string model, device;
  std::optional<int64_t> devices, global_batch_size, sequence_length;
  std::optional<Precision> precision;
  std::optional<int64_t> fixed_warmup_steps;
  std::optional<Framework> framework = {};     // also around the trainer that wrote the log: Primus starts Megatron-LM
  std::string framework_from = "--framework";  // who states it
  std::optional<ModelSpec> shape = {};         // of `model`, from a configuration
  std::optional<double> usd_per_hour = {};     // of all devices of the run
  std::vector<AssumedFact> assumed = {};       // those above, but for the framework, that no log or option states
  std::vector<StatedPeak> peaks;               // of the configuration
};

// Whether `outer` starts the trainer of `inner`, whose log then states `inner`.
bool starts_trainer_of(Framework outer, Framework inner);

// Converts a log to a result: of steps that were repeated after a restart the last attempt counts; steps whose time
// includes a pause are labelled and excluded from the steady state; a log that ends before its last step, or in a
// failure, is not a complete run. The user's facts fill gaps of the log; if they contradict it, the log wins, with a
// warning.
RunResult make_result(const ReadLog& read, const std::string& path, const KnownFacts& known);
// As above, and gives the memory of the steps back before the summary needs its own.
RunResult make_result(ReadLog&& read, const std::string& path, const KnownFacts& known);

// Warns of names that no catalogue knows: figures are missing, and the name may be a typo.
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
  copy(facts.expert_parallel, layout.expert_model_parallel_size);
  copy(facts.expert_tensor_parallel, layout.expert_tensor_parallel_size);
  copy(facts.accumulation_steps, layout.gradient_accumulation_steps);
}

}  // namespace tprimat::logs
