#include <algorithm>
#include <string>

#include "extract/dialect.h"
#include "extract/dialects/step_gap.h"
#include "extract/logged_routing.h"
#include "extract/scan_text.h"
#include "extract/to_result.h"
#include "result/result_file.h"

namespace tprimat::logs {
namespace {

bool is_result(std::string_view head) {
  const size_t start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || head[start] != '{') return false;
  return contains(head, "\"performance_metrics\"") || contains(head, "\"step_times\"") ||
         contains(head, "\"raw_step_times\"");
}

void fill_facts(const RunResult& result, LoggedFacts& facts) {
  for_each_shared_fact(facts, result, [](auto& fact, const auto& field) { fact = field; });
  static_cast<TrainingSettings&>(facts) = result.training_config;
  facts.platform = result.platform;
  if (!result.model_info.name.empty()) facts.model = result.model_info.name;
  facts.parameters = result.model_info.num_parameters;
  facts.shape = result.model_info.shape;
  if (!result.gpu_info.device_name.empty()) facts.gpu_name = result.gpu_info.device_name;
  facts.gpu_memory_gb = result.gpu_info.total_memory_gb;
  if (result.experts) facts.routing = result.experts->routing, facts.dispatcher = result.experts->dispatcher;
}

void add_memory(const MemoryMetrics& memory, LogBuilder& log) {
  if (memory.peak_memory_allocated_gb) log.add_memory(-1, MemoryKind::peak_allocated, *memory.peak_memory_allocated_gb);
  if (memory.peak_memory_reserved_gb) log.add_memory(-1, MemoryKind::peak_reserved, *memory.peak_memory_reserved_gb);
  if (memory.peak_device_used_gb) log.add_memory(-1, MemoryKind::device_used, *memory.peak_device_used_gb);
}

Figure item(const std::vector<double>& series, size_t index) {
  return index < series.size() ? Figure(series[index]) : Figure();
}

// In these a file has null for a missing figure.
Figure finite_item(const std::vector<double>& series, size_t index) {
  const Figure figure = item(series, index);
  return figure.finite() ? figure : Figure();
}

void add_experts(const RunResult& result, size_t index, ExtractedStep& record) {
  if (!result.experts) return;
  const auto take = [&](Figure& figure, const std::optional<std::vector<double>>& series) {
    if (series) figure = finite_item(*series, index);
  };
  take(record.expert_load, result.experts->load_values);
  take(record.dropped_share, result.experts->dropped_values);
  take(record.aux_loss, result.experts->aux_loss_values);
  take(record.z_loss, result.experts->z_loss_values);
}

// The series start at the first step and are complete.
void add_steps(const RunResult& result, LogBuilder& log) {
  const size_t count = std::max(result.step_times.size(), result.loss_values.size());
  for (size_t i = 0; i < count; ++i) {
    LogLine line;
    line.number = 1;
    ExtractedStep record = LogBuilder::start_step(line, static_cast<int64_t>(i) + 1);
    set_printed_time(record, item(result.step_times, i));
    record.loss = item(result.loss_values, i);
    record.learning_rate = finite_item(result.learning_rates, i);
    record.grad_norm = finite_item(result.grad_norms, i);
    record.memory_allocated_gb = finite_item(result.memory_values, i);
    add_experts(result, i, record);
    log.add(record);
  }
}

void read_result(std::string_view whole, LogBuilder& log) {
  const RunResult result = run_result_from_json(parse_json(whole, "result"), "");
  fill_facts(result, log.facts());
  add_memory(result.memory_metrics, log);
  add_steps(result, log);
  for (const std::string& warning : result.warnings)
    if (!warning.starts_with(k_no_sparse_mfu)) log.note(warning);  // it is judged anew
  if (log.log().records == 0)
    log.note("the result has no series of steps: pass it to `compare`, there is nothing to extract");
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
                     {"memory_allocated_gb", "memory_values"},
                     {"expert_load", "experts.load_values"},
                     {"dropped_share", "experts.dropped_values"},
                     {"aux_loss", "experts.aux_loss_values"},
                     {"z_loss", "experts.z_loss_values"}},
          .is_document = is_result,
          .read_document = read_result};
}

}  // namespace tprimat::logs
