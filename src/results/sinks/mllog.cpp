#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/files.h"
#include "result/summary.h"
#include "sinks/sinks.h"
#include "text/json.h"

namespace tprimat::results {
namespace {

constexpr std::string_view k_point = "POINT_IN_TIME", k_interval_start = "INTERVAL_START",
                           k_interval_end = "INTERVAL_END";

// The lines of one run. Keys are those of mlperf_logging.mllog.constants; figures of steps are in "tracked_stats", as
// in NVIDIA's submissions.
class MllogLines {
 public:
  void add(std::string_view event_type, std::string_view key, Json value, Json metadata, double unix_time) {
    const Json line = {{"namespace", ""},           {"time_ms", to_milliseconds(unix_time)},
                       {"event_type", event_type},  {"key", key},
                       {"value", std::move(value)}, {"metadata", std::move(metadata)}};
    text_ += ":::MLLOG " + protect_token(print_json_ascii(line)) + '\n';
  }

  template <class T>
  void add_setting(std::string_view key, const std::optional<T>& value, double unix_time) {
    if (value) add(k_point, key, *value, Json::object(), unix_time);
  }

  const std::string& text() const { return text_; }

 private:
  // Readers look for the last ":::MLLOG" of a line, also inside of a string.
  static std::string protect_token(std::string json) {
    for (size_t at = json.find(":::"); at != std::string::npos; at = json.find(":::", at))
      json.replace(at, 1, "\\u003a");
    return json;
  }

  std::string text_;
};

// "NVIDIA H100 80GB HBM3" -> "H100-80GB-HBM3", as submissions name their systems: "tinybox_8xMI300X".
std::string part_number(std::string name) {
  for (const std::string_view vendor : {"NVIDIA ", "AMD Instinct ", "AMD "})
    if (name.starts_with(vendor)) name.erase(0, vendor.size());
  std::ranges::replace(name, ' ', '-');
  return name;
}

void add_mllog_settings(MllogLines& lines, const RunResult& result, double start) {
  const TrainingConfig& training = result.training_config;
  if (!result.model_info.name.empty())
    lines.add(k_point, "submission_benchmark", result.model_info.name, Json::object(), start);
  const auto devices = device_count(result);
  if (devices && !result.gpu_info.device_name.empty())
    lines.add(k_point, "submission_platform",
              fmt::format("tprimat_{}x{}", *devices, part_number(result.gpu_info.device_name)), Json::object(), start);
  lines.add_setting("global_batch_size", training.global_batch_size, start);
  lines.add_setting("max_sequence_length", training.sequence_length, start);
  lines.add_setting("gradient_accumulation_steps", result.parallelism_config.gradient_accumulation_steps, start);
  lines.add_setting("seed", training.seed, start);
  lines.add_setting("opt_name", training.optimizer, start);
  lines.add_setting("opt_base_learning_rate", training.learning_rate, start);
  lines.add_setting("opt_end_learning_rate", training.min_learning_rate, start);
  lines.add_setting("opt_learning_rate_warmup_steps", training.warmup_steps, start);
  lines.add_setting("opt_learning_rate_training_steps", training.max_steps, start);
  lines.add_setting("opt_learning_rate_decay_schedule", training.schedule, start);
  lines.add_setting("opt_weight_decay", training.weight_decay, start);
  lines.add_setting("opt_gradient_clip_norm", training.clip_grad_norm, start);
}

void add_mllog_step(MllogLines& lines, const StepRow& row, const std::optional<int64_t>& batch) {
  Json metadata = {{"step", row.step}};
  if (batch && *batch > 0 && row.step >= 0 && row.step <= INT64_MAX / *batch)
    metadata["samples_count"] = row.step * *batch;
  if (row.learning_rate) metadata["lr"] = *row.learning_rate;
  Json stats = Json::object();
  const auto put = [&](const char* key, const std::optional<double>& value) {
    if (value) stats[key] = *value;
  };
  put("train_loss", row.loss);
  put("train_step_time", row.step_time_seconds);
  put("tokens_per_second", row.tokens_per_second);
  put("grad_norm", row.grad_norm);
  if (!stats.empty()) lines.add(k_point, "tracked_stats", stats, metadata, row.time_or_elapsed());
  if (row.validation_loss) lines.add(k_point, "eval_accuracy", *row.validation_loss, metadata, row.time_or_elapsed());
}

// The mean of the whole run, in samples per second as MLPerf counts it.
void add_mllog_throughput(MllogLines& lines, const RunResult& result, double end) {
  const auto& rate = result.derived.tokens_per_second;
  const auto& length = result.training_config.sequence_length;
  if (!rate || !std::isfinite(rate->value)) return;
  Json stats = {{"tokens_per_second", rate->value}};
  if (length && *length > 0) stats["throughput"] = rate->value / static_cast<double>(*length);
  lines.add(k_point, "tracked_stats", stats, Json::object(), end);
}

std::string render_mllog(const ExportedRun& run) {
  const RunResult& result = run.result;
  const std::vector<StepRow> rows = make_step_rows(result);
  const double start = start_of_steps(result).value_or(0);
  const double end = rows.empty() ? start : rows.back().time_or_elapsed();
  MllogLines lines;
  add_mllog_settings(lines, result, start);
  lines.add(k_interval_start, "run_start", nullptr, Json::object(), start);
  for (const StepRow& row : rows) add_mllog_step(lines, row, result.training_config.global_batch_size);
  add_mllog_throughput(lines, result, end);
  const bool success = result.status == RunStatus::complete;
  Json ending = {{"status", success ? "success" : "aborted"}};
  if (result.status_reason) ending["reason"] = *result.status_reason;
  lines.add(k_interval_end, "run_stop", nullptr, ending, end);
  return lines.text();
}

class MllogSink : public Sink {
 public:
  explicit MllogSink(const std::filesystem::path& folder) : folder_(folder / "mllog") {}
  void add(const ExportedRun& run) override {
    write_file_atomically(folder_ / (run.name + ".log"), render_mllog(run), Survives::kill);
  }
  std::vector<std::filesystem::path> places() const override { return {folder_}; }

 private:
  std::filesystem::path folder_;
};

}  // namespace

SinkKind mllog_sink() { return {"mllog", "one log of MLPerf's :::MLLOG lines per run", open_sink<MllogSink>}; }

}  // namespace tprimat::results
