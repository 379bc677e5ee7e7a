#include <fmt/format.h>

#include <cmath>

#include "base/clock.h"
#include "base/files.h"
#include "result/metrics.h"
#include "result/summary.h"
#include "sinks/kinds.h"

namespace tprimat {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

// https://prometheus.io/docs/practices/naming: base units, named at the end.
struct GaugeOfMetric {
  std::string_view metric, name;
  double factor = 1.0;  // from the metric's unit to the gauge's
};

constexpr GaugeOfMetric k_gauges[] = {
    {"tokens_per_second_per_gpu", "tokens_per_second_per_gpu"},
    {"tokens_per_second", "tokens_per_second"},
    {"tflops_per_gpu", "model_flops_per_second_per_gpu", 1e12},
    {"mfu", "mfu_ratio"},
    {"mean_step_time", "step_time_mean_seconds"},
    {"median_step_time", "step_time_median_seconds"},
    {"p95_step_time", "step_time_p95_seconds"},
    {"step_time_cv", "step_time_variation_ratio"},
    {"first_step_time", "first_step_time_seconds"},
    {"total_time", "steps_time_seconds"},
    {"peak_memory_allocated_gb", "peak_memory_allocated_bytes", 1e9},
    {"peak_memory_reserved_gb", "peak_memory_reserved_bytes", 1e9},
    {"peak_device_used_gb", "peak_device_used_bytes", 1e9},
    {"mean_power", "power_mean_watts"},
    {"joules_per_token", "energy_per_token_joules"},
    {"usd_per_1e12_tokens", "cost_per_1e12_tokens_usd"},
    {"days_per_1e12_tokens", "time_per_1e12_tokens_seconds", 86400},
    {"final_loss", "final_loss_nats"},
};

// Of a label's value, and of a help text, which keeps its quotes.
std::string escape_exposition(std::string_view text, bool in_quotes) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\')
      escaped += "\\\\";
    else if (c == '\n')
      escaped += "\\n";
    else if (c == '"' && in_quotes)
      escaped += "\\\"";
    else
      escaped += c == '\r' || c == '\0' ? ' ' : c;
  }
  return escaped;
}

// One gauge of all runs.
class GaugeFamily {
 public:
  GaugeFamily(std::string_view name, std::string_view help) : name_(fmt::format("tprimat_{}", name)), help_(help) {}

  void add(const Labels& labels, double value) {
    std::string inside;
    for (const auto& [key, text] : labels)
      if (!text.empty())
        inside += fmt::format("{}{}=\"{}\"", inside.empty() ? "" : ",", key, escape_exposition(text, true));
    samples_ += fmt::format("{}{{{}}} {}\n", name_, inside, value);
  }

  std::string render() const {
    if (samples_.empty()) return "";
    return fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n{2}", name_, escape_exposition(help_, false), samples_);
  }

 private:
  std::string name_, help_, samples_;
};

template <NamedEnum E>
std::string name_or_empty(const std::optional<E>& value) {
  return value ? std::string(enum_name(*value)) : "";
}

Labels labels_of(const ExportedRun& run) {
  const RunResult& result = run.result;
  return {{"run", run.name},
          {"model", result.model_info.name},
          {"platform", name_or_empty(result.platform)},
          {"framework", name_or_empty(result.framework)}};
}

Labels facts_of(const ExportedRun& run) {
  const RunResult& result = run.result;
  Labels labels = labels_of(run);
  labels.push_back({"device", result.gpu_info.device_name});
  labels.push_back({"precision", name_or_empty(result.precision)});
  labels.push_back({"strategy", result.parallelism_config.strategy_name.value_or("")});
  labels.push_back({"framework_version", result.framework_version.value_or("")});
  labels.push_back({"status", std::string(enum_name(result.status))});
  return labels;
}

class PrometheusSink : public Sink {
 public:
  explicit PrometheusSink(const std::filesystem::path& folder) : path_(folder / "tprimat.prom") {
    for (const GaugeOfMetric& gauge : k_gauges) {
      const Metric* metric = find_metric(gauge.metric);
      metrics_.emplace_back(gauge.name, fmt::format("{}: {}", metric->title, metric->formula));
    }
  }

  void add(const ExportedRun& run) override {
    const RunResult& result = run.result;
    const Labels labels = labels_of(run);
    info_.add(facts_of(run), 1);
    complete_.add(labels, result.status == RunStatus::complete ? 1 : 0);
    if (const auto start = parse_timestamp(result.timestamp)) start_.add(labels, *start);
    if (const auto devices = device_count(result)) devices_.add(labels, static_cast<double>(*devices));
    if (result.performance_metrics) steps_.add(labels, static_cast<double>(result.performance_metrics->total_steps));
    for (size_t i = 0; i < std::size(k_gauges); ++i) {
      const auto figure = find_metric(k_gauges[i].metric)->read(result);
      if (figure && std::isfinite(figure->value)) metrics_[i].add(labels, figure->value * k_gauges[i].factor);
    }
  }

  void finish() override {
    std::string text = info_.render() + complete_.render() + start_.render() + devices_.render() + steps_.render();
    for (const GaugeFamily& family : metrics_) text += family.render();
    write_file_atomically(path_, text, Survives::kill);
  }

  std::vector<std::filesystem::path> places() const override { return {path_}; }

 private:
  std::filesystem::path path_;
  GaugeFamily info_{"run_info", "what each run was; always 1"};
  GaugeFamily complete_{"run_complete", "1 for a run that reached its end, 0 for one that failed or is invalid"};
  GaugeFamily start_{"run_start_timestamp_seconds", "when the run started, seconds since 1970"};
  GaugeFamily devices_{"devices", "devices of the run"};
  GaugeFamily steps_{"steps", "steps measured, warm-up included"};
  std::vector<GaugeFamily> metrics_;
};

}  // namespace

SinkKind prometheus_sink() {
  return {
      "prometheus", "tprimat.prom, for the textfile collector of node_exporter",
      [](const SinkPlace& place) -> std::unique_ptr<Sink> { return std::make_unique<PrometheusSink>(place.folder); }};
}

}  // namespace tprimat
