#include <algorithm>
#include <string>

#include "extract/dialect.h"
#include "extract/scan_text.h"
#include "result/result_file.h"

namespace tprimat::logs {
namespace {

bool is_result(std::string_view head) {
  const size_t start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || head[start] != '{') return false;
  return contains(head, "\"performance_metrics\"") || contains(head, "\"step_times\"") ||
         contains(head, "\"raw_step_times\"");
}

void fill_run_facts(const RunResult& result, LoggedFacts& facts) {
  facts.platform = result.platform;
  facts.framework = result.framework;
  facts.framework_version = result.framework_version;
  facts.precision = result.precision;
  facts.dataset = result.dataset;
  if (!result.model_info.name.empty()) facts.model = result.model_info.name;
  facts.parameters = result.model_info.num_parameters;
  if (!result.gpu_info.device_name.empty()) facts.gpu_name = result.gpu_info.device_name;
  facts.gpu_count = result.gpu_info.device_count;
  facts.gpu_memory_gb = result.gpu_info.total_memory_gb;
  facts.pytorch_version = result.gpu_info.pytorch_version;
  facts.stack_version = result.gpu_info.software_version;
}

void fill_training_facts(const RunResult& result, LoggedFacts& facts) {
  const TrainingConfig& training = result.training_config;
  facts.max_steps = training.max_steps;
  facts.global_batch_size = training.global_batch_size;
  facts.micro_batch_size = training.micro_batch_size;
  facts.sequence_length = training.sequence_length;
  facts.learning_rate = training.learning_rate;
  facts.min_learning_rate = training.min_learning_rate;
  facts.weight_decay = training.weight_decay;
  facts.clip_grad_norm = training.clip_grad_norm;
  facts.warmup_steps = training.warmup_steps;
  facts.seed = training.seed;
  facts.optimizer = training.optimizer;
  facts.schedule = training.schedule;
  const ParallelismConfig& layout = result.parallelism_config;
  facts.tensor_parallel = layout.tensor_model_parallel_size;
  facts.pipeline_parallel = layout.pipeline_model_parallel_size;
  facts.data_parallel = layout.data_parallel_size;
  facts.context_parallel = layout.context_parallel_size;
  facts.accumulation_steps = layout.gradient_accumulation_steps;
}

void add_memory(const MemoryMetrics& memory, LogBuilder& log) {
  if (memory.peak_memory_allocated_gb) log.add_memory(-1, MemoryKind::peak_allocated, *memory.peak_memory_allocated_gb);
  if (memory.peak_memory_reserved_gb) log.add_memory(-1, MemoryKind::peak_reserved, *memory.peak_memory_reserved_gb);
  if (memory.peak_device_used_gb) log.add_memory(-1, MemoryKind::device_used, *memory.peak_device_used_gb);
}

Figure item(const std::vector<double>& series, size_t index) {
  return index < series.size() ? Figure(series[index]) : Figure();
}

// Of these a file says null where there is no figure.
Figure finite_item(const std::vector<double>& series, size_t index) {
  const Figure figure = item(series, index);
  return figure.finite() ? figure : Figure();
}

// The series start at the first step and leave none out.
void add_steps(const RunResult& result, LogBuilder& log) {
  const size_t count = std::max(result.step_times.size(), result.loss_values.size());
  for (size_t i = 0; i < count; ++i) {
    LogLine line;
    line.number = 1;
    ExtractedStep record = LogBuilder::start_step(line, static_cast<int64_t>(i) + 1);
    if (const Figure seconds = item(result.step_times, i); seconds.finite() && *seconds > 0) {
      record.time_source = TimeSource::printed;
      record.time_seconds = seconds;
    }
    record.loss = item(result.loss_values, i);
    record.learning_rate = finite_item(result.learning_rates, i);
    record.grad_norm = finite_item(result.grad_norms, i);
    record.memory_allocated_gb = finite_item(result.memory_values, i);
    log.add(record);
  }
}

void read_result(std::string_view whole, LogBuilder& log) {
  const RunResult result = run_result_from_json(parse_json(whole, "result"), "");
  fill_run_facts(result, log.facts());
  fill_training_facts(result, log.facts());
  add_memory(result.memory_metrics, log);
  add_steps(result, log);
  for (const std::string& warning : result.warnings) log.note(warning);
  if (log.log().records == 0)
    log.note("the result holds no series of steps: its averages are for `compare`, there is nothing to extract");
}

}  // namespace

Dialect result_dialect() {
  return {.id = "result",
          .title = "result file, ours or of older tools (JSON)",
          .versions = "schema version 1 and older",
          .fields = {{"time_seconds", "step_times, raw_step_times"},
                     {"loss", "loss_values"},
                     {"learning_rate", "learning_rates"},
                     {"grad_norm", "grad_norms"},
                     {"memory_allocated_gb", "memory_values"}},
          .is_document = is_result,
          .read_document = read_result};
}

}  // namespace tprimat::logs
