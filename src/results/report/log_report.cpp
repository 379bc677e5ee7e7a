#include "report/log_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "report/document.h"
#include "result/active_count.h"
#include "result/gpu_cores.h"
#include "result/metric_text.h"
#include "result/summary.h"
#include "stats/descriptive.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat::results {
namespace {

using Rows = std::vector<std::vector<std::string>>;

void add(Rows& rows, const char* name, const std::string& text) {
  if (!text.empty()) rows.push_back({name, text});
}

template <class T>
std::string labelled(const char* name, const std::optional<T>& value) {
  return value ? fmt::format("{} {}", name, *value) : "";
}

std::string joined(std::initializer_list<std::string> parts) {
  std::string text;
  for (const std::string& part : parts)
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string describe_format(const RunResult& result) {
  if (!result.source.format) return "not recognised";
  std::string text = *result.source.format;
  if (result.source.confidence) text += fmt::format(" (confidence {:.2f})", *result.source.confidence);
  return text;
}

std::string describe_devices(const RunResult& result) {
  const DeviceInfo& device = result.gpu_info;
  std::string text = device.device_count ? fmt::format("{} x ", *device.device_count) : "";
  text += device.device_name.empty() ? device.device_count ? "device not named" : "" : printable(device.device_name);
  if (device.total_memory_gb) text += fmt::format(", {} GB each", format_fixed(*device.total_memory_gb, 2));
  return text;
}

std::string list_layout(const RunResult& result) {
  const ParallelismConfig& layout = result.parallelism_config;
  return joined({labelled("TP", layout.tensor_model_parallel_size), labelled("PP", layout.pipeline_model_parallel_size),
                 labelled("DP", layout.data_parallel_size), labelled("CP", layout.context_parallel_size),
                 labelled("EP", layout.expert_model_parallel_size),
                 labelled("ETP", layout.expert_tensor_parallel_size)});
}

// "2 of 8, balanced routing, 1.2 x the mean on the fullest expert"
std::string describe_experts(const RunResult& result) {
  const auto& shape = result.model_info.shape;
  if (!result.experts && (!shape || !shape->experts)) return "";
  const ExpertFigures known = result.experts.value_or(ExpertFigures());
  const std::string count = shape && shape->experts
                                ? fmt::format("{} of {} per token", shape->experts->per_token, shape->experts->count)
                                : "";
  const std::string routing =
      known.routing ? fmt::format("{} routing", enum_name(*known.routing)) : "routing not known";
  return joined({count, routing, known.dispatcher ? std::string(enum_name(*known.dispatcher)) : "",
                 known.load ? format_significant(*known.load, 3) + " x the mean on the fullest expert" : "",
                 known.dropped_share ? format_percent(*known.dropped_share) + " dropped" : "",
                 known.aux_loss ? "balancing loss " + format_significant(*known.aux_loss, 3) : ""});
}

std::string describe_batch(const RunResult& result) {
  const TrainingConfig& training = result.training_config;
  return joined({labelled("GBS", training.global_batch_size), labelled("MBS", training.micro_batch_size),
                 labelled("SL", training.sequence_length),
                 result.precision ? std::string(enum_name(*result.precision)) : ""});
}

std::string describe_range(const RunResult& result) {
  if (result.step_times.empty()) return "none";
  const size_t entries = result.step_times.size();
  std::string text = fmt::format("{} to {}", step_number(result, 0), step_number(result, entries - 1));
  if (result.training_config.max_steps) text += fmt::format(" of {}", *result.training_config.max_steps);
  text += fmt::format(", {} record{}", entries, entries == 1 ? "" : "s");
  const int64_t lines = result.source.records.value_or(0);
  if (lines > static_cast<int64_t>(entries)) text += fmt::format(" from {} reports", lines);
  return text;
}

std::string describe_step_time(const RunResult& result) {
  if (!result.statistics) return "not known";
  const StepStatistics& s = *result.statistics;
  std::string text = fmt::format("median {}", format_duration(s.median));
  if (s.ci95_low && s.ci95_high)
    text += fmt::format(", mean {} [{}, {}]", format_duration(s.mean), format_duration(*s.ci95_low),
                        format_duration(*s.ci95_high));
  text += fmt::format(" over {} steady record{}", s.count, s.count == 1 ? "" : "s");
  const TimeSource source = result.source.step_time.value_or(TimeSource::printed);
  if (source != TimeSource::printed)
    text += source == TimeSource::from_rate ? "; derived from rates" : "; derived from time stamps";
  return text;
}

std::string describe_left_out(const RunResult& result) {
  std::string text = fmt::format("{} at the start", result.warmup.steps_excluded);
  std::map<StepLabel, int> labels;
  if (result.steps)
    for (const LabelledStep& step : result.steps->labelled) ++labels[step.label];
  for (const auto& [label, count] : labels) text += fmt::format(", {} with {}", count, enum_name(label));
  return text;
}

std::string describe_rate(const std::optional<Estimate>& estimate) {
  if (!estimate) return "";
  std::string text = format_count(estimate->value);
  if (estimate->low && estimate->high)
    text += fmt::format(" [{}, {}]", format_count(*estimate->low), format_count(*estimate->high));
  return text;
}

// The median after the warm-up, or the last record where there is none: describe_reported says which.
std::string usual_value(const RunResult& result, const std::optional<std::vector<double>>& series, int decimals,
                        const char* unit, double factor = 1) {
  if (!series) return "";
  std::vector<double> values;
  const auto start = static_cast<size_t>(std::max<int64_t>(0, result.warmup.steps_excluded));
  for (size_t i = std::min(start, series->size() - 1); i < series->size(); ++i)
    if (std::isfinite((*series)[i])) values.push_back((*series)[i]);
  if (values.empty()) return "";
  return format_fixed(median(values) * factor, decimals) + unit;
}

std::string describe_reported(const RunResult& result) {
  if (!result.reported) return "";
  const ReportedFigures& r = *result.reported;
  const std::string figures = joined({usual_value(result, r.tflops_per_gpu, 1, " TFLOP/s per device"),
                                      usual_value(result, r.tokens_per_second_per_gpu, 1, " tokens/s per device"),
                                      usual_value(result, r.tokens_per_second, 1, " tokens/s"),
                                      usual_value(result, r.samples_per_second, 3, " samples/s"),
                                      usual_value(result, r.mfu, 2, " % MFU", 100)});
  const bool is_steady = result.warmup.steps_excluded < std::ssize(result.step_times);
  return figures.empty() ? "" : (is_steady ? "median " : "last record ") + figures;
}

std::string describe_mfu(const RunResult& result) {
  if (!result.derived.mfu) return "";
  const auto& shape = result.model_info.shape;
  return format_percent(result.derived.mfu->value) + (shape && shape->is_sparse() ? ", active experts only" : "");
}

std::string describe_losses(const RunResult& result) {
  const auto finite = [](double v) { return std::isfinite(v); };
  const auto& losses = result.loss_values;
  const auto first = std::ranges::find_if(losses, finite);
  const auto last = std::find_if(losses.rbegin(), losses.rend(), finite);
  if (first == losses.end()) return losses.empty() ? "" : "never a number";
  return format_fixed(*first, 4) + " to " + format_fixed(*last, 4);
}

std::string describe_memory(const RunResult& result) {
  const MemoryMetrics& memory = result.memory_metrics;
  const auto part = [](const char* name, const std::optional<double>& gb) {
    return gb ? fmt::format("{} {} GB", name, format_fixed(*gb, 2)) : "";
  };
  return joined({part("allocated", memory.peak_memory_allocated_gb), part("reserved", memory.peak_memory_reserved_gb),
                 part("device used", memory.peak_device_used_gb)});
}

// "9.387 min from run_start to run_stop", in MLPerf's unit; of a run that was aborted, until then.
std::string describe_time_to_train(const TimeToTrain& time) {
  if (!time.has_time()) return time.is_success() ? "not known: run_start and run_stop do not give it" : "";
  return fmt::format("{} min from run_start to run_stop{}", format_significant(*time.seconds / 60, 4),
                     time.is_success() ? "" : ", without reaching the target");
}

// "0.9231, target at most 0.925 (stated in the log)"
std::string describe_quality(const TimeToTrain& time) {
  std::string text = time.reached_quality ? format_significant(*time.reached_quality, 4) : "no evaluation";
  if (!time.target_quality) return time.reached_quality ? text + ", target not known" : "";
  const bool is_rising = time.higher_is_better.value_or(false);
  const char* side = !time.higher_is_better ? "" : is_rising ? " at least" : " at most";
  return text + fmt::format(", target{} {:g} ({})", side, *time.target_quality,
                            time.target_source == "log" ? "stated in the log" : "rule of the closed division");
}

std::string describe_samples(const TimeToTrain& time) {
  if (!time.samples) return "";
  std::string text = fmt::format("{} trained", format_count(static_cast<double>(*time.samples)));
  if (time.samples_per_second)
    text += fmt::format(", {}/s without evaluations", format_significant(*time.samples_per_second, 4));
  return text;
}

void add_time_to_train(Rows& rows, const RunResult& result) {
  if (!result.time_to_train) return;
  add(rows, "time to train", describe_time_to_train(*result.time_to_train));
  add(rows, "quality", describe_quality(*result.time_to_train));
  add(rows, "samples", describe_samples(*result.time_to_train));
}

std::string describe_status(const RunResult& result) {
  std::string text(enum_name(result.status));
  if (result.status_reason) text += ": " + printable(*result.status_reason);
  return text;
}

void add_events(Rows& rows, const RunResult& result) {
  if (!result.events) return;
  for (const auto& [kind, count] : *result.event_counts) {
    const auto found =
        std::ranges::find_if(*result.events, [&kind = kind](const RunEvent& event) { return event.kind == kind; });
    std::string text = fmt::format("{} x", count);
    if (found != result.events->end()) {
      if (found->line) text += fmt::format(", line {}", *found->line);
      if (!found->text.empty()) text += ": " + shorten(printable(found->text), 100);
    }
    std::string name(enum_name(kind));
    std::ranges::replace(name, '_', ' ');
    rows.push_back({name, text});
  }
}

// "training_config.num_gpus" -> "devices"
std::string name_fact(const std::string& key) {
  constexpr std::pair<std::string_view, const char*> k_names[] = {{"model_info.name", "model"},
                                                                  {"model_info.shape", "shape of"},
                                                                  {"gpu_info.device_name", "device"},
                                                                  {"training_config.num_gpus", "devices"},
                                                                  {"training_config.global_batch_size", "GBS"},
                                                                  {"training_config.sequence_length", "SL"},
                                                                  {"derived.usd_per_hour", "USD per hour"}};
  for (const auto& [known, name] : k_names)
    if (key == known) return name;
  return printable(key);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> describe_assumed(const RunResult& result) {
  std::vector<std::pair<std::string, std::string>> groups;
  for (const AssumedFact& fact : result.source.assumed.value_or(std::vector<AssumedFact>())) {
    const std::string text = name_fact(fact.key) + " " + printable(fact.value);
    const auto group = std::ranges::find(groups, fact.from, &std::pair<std::string, std::string>::first);
    if (group == groups.end())
      groups.emplace_back(fact.from, text);
    else
      group->second += ", " + text;
  }
  return groups;
}

std::string render_log_summary(const RunResult& result) {
  Rows rows;
  add(rows, "log", printable(result.source.log.value_or("")));
  add(rows, "format", describe_format(result));
  if (result.source.attempt)
    add(rows, "attempt",
        fmt::format("{} of {}", *result.source.attempt, result.source.attempts.value_or(*result.source.attempt)));
  add(rows, "status", describe_status(result));
  add(rows, "model", printable(result.model_info.name));
  if (result.model_info.num_parameters)
    add(rows, "parameters", format_count(static_cast<double>(*result.model_info.num_parameters)));
  const auto& shape = result.model_info.shape;
  if (const auto count = shape ? active_parameters_of(*shape) : std::nullopt)
    add(rows, "active", format_count(*count) + " parameters per token");
  add(rows, "experts", describe_experts(result));
  add(rows, "devices", describe_devices(result));
  if (const auto cores = find_gpu_cores(result)) add(rows, "GPU cores", cores->text());
  add(rows, "layout", list_layout(result));
  add(rows, "batch", describe_batch(result));
  add_time_to_train(rows, result);
  add(rows, "steps", describe_range(result));
  if (!result.step_times.empty()) {
    add(rows, "step time", describe_step_time(result));
    add(rows, "left out", describe_left_out(result));
  }
  add(rows, "tokens/s", describe_rate(result.derived.tokens_per_second));
  add(rows, "tokens/s per device", describe_rate(result.derived.tokens_per_second_per_gpu));
  add(rows, "MFU (causal)", describe_mfu(result));
  add(rows, "as reported", describe_reported(result));
  add(rows, "loss", describe_losses(result));
  add(rows, "peak memory", describe_memory(result));
  add(rows, "resources", describe_resources(list_figures(result)));
  for (const TelemetrySummary& each : result.telemetry)
    if (each.mean_power_watts)
      add(rows, each.source.c_str(), format_fixed(*each.mean_power_watts, 1) + " W on average");
  for (const auto& [from, facts] : describe_assumed(result))
    rows.push_back({"from " + shorten(printable(from), 60), facts});
  add_events(rows, result);
  return render_text({{}, rows, {}});
}

void drop_series(ExtractedFile& file) {
  RunResult& result = file.result;
  const double last_loss = result.loss_values.empty() ? 0 : result.loss_values.back();
  result.step_times.clear(), result.learning_rates.clear(), result.grad_norms.clear(), result.memory_values.clear();
  if (!result.loss_values.empty()) result.loss_values = {last_loss};
  result.reported.reset(), result.steps.reset(), result.events.reset(), result.effective_config.reset();
  result.step_telemetry.reset();
}

std::string render_extracted_files(const std::vector<ExtractedFile>& files) {
  TextTable table{{"file", "format", "steps", "step time", "tokens/s/device", "last loss", "status"}, {}, {2, 3, 4, 5}};
  std::string nothing;
  for (const ExtractedFile& file : files) {
    if (!file.why_nothing.empty()) {
      nothing += fmt::format("  {}: {}\n", printable(file.path), printable(file.why_nothing));
      continue;
    }
    const RunResult& r = file.result;
    const auto median = r.statistics ? std::optional(r.statistics->median) : std::nullopt;
    const auto rate = r.derived.tokens_per_second_per_gpu;
    const auto last_loss = r.loss_values.empty() ? std::nullopt : std::optional(r.loss_values.back());
    table.rows.push_back({printable(file.path), r.source.format.value_or("-"),
                          r.performance_metrics ? fmt::format("{}", r.performance_metrics->total_steps) : "0",
                          median ? format_duration(*median) : "-", rate ? format_count(rate->value) : "-",
                          last_loss && std::isnan(*last_loss) ? "NaN" : (last_loss ? format_fixed(*last_loss, 4) : "-"),
                          shorten(describe_status(r), 90)});
  }
  std::string text = table.rows.empty() ? "" : render_text(table);
  if (!nothing.empty()) text += (text.empty() ? "" : "\n") + std::string("Nothing was extracted from:\n") + nothing;
  return text;
}

}  // namespace tprimat::results
