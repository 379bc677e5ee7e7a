#include "compare/stated_facts.h"

#include <numeric>
#include <set>
#include <string_view>

#include "compare/figure_meanings.h"
#include "text/json_fields.h"

namespace tprimat::results {
namespace {

template <class T>
void append_bytes(std::string& text, const std::vector<T>& values) {
  text += std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// A name says nothing of the work that model, batch and precision do not.
TrainingConfig without_names(TrainingConfig config) {
  config.parallel_strategy.reset();
  return config;
}

}  // namespace

std::string state_work(const RunResult& result) {
  RunResult facts;
  facts.model_info = result.model_info;
  facts.precision = result.precision;
  facts.training_config = without_names(result.training_config);
  for (auto* figure : {&facts.training_config.seed, &facts.training_config.num_gpus,
                       &facts.training_config.micro_batch_size, &facts.training_config.max_steps})
    figure->reset();
  facts.training_config.recompute.reset();
  std::string text = print_json_line(to_json(facts));
  append_bytes(text, result.learning_rates);
  if (result.steps && result.steps->numbers) append_bytes(text, *result.steps->numbers);
  return text;
}

std::string state_facts(const RunResult& result) {
  RunResult facts;
  facts.platform = result.platform;
  facts.framework = result.framework;
  facts.framework_version = result.framework_version;
  facts.dataset = result.dataset;
  facts.gpu_info = result.gpu_info;
  facts.training_config = without_names(result.training_config);
  facts.parallelism_config = result.parallelism_config;
  facts.effective_config = result.effective_config;
  for (const auto& [key, value] : result.environment)
    if (key.ends_with("driver")) facts.environment[key] = value;
  return state_work(result) + print_json_line(to_json(facts)) + state_meanings(result);
}

std::vector<size_t> distinct_runs(const Contender& contender) {
  if (!contender.distinct.empty()) return contender.distinct;
  std::vector<size_t> distinct;
  std::set<std::string> stated;
  for (size_t i = 0; i < contender.runs.size(); ++i)
    if (contender.runs.size() == 1 || stated.insert(state_facts(contender.runs[i].result)).second)
      distinct.push_back(i);
  return distinct;
}

void note_distinct_runs(Contender& contender) {
  contender.distinct.clear();
  contender.distinct = distinct_runs(contender);
}

}  // namespace tprimat::results
