#include <fmt/format.h>

#include <cmath>

#include "base/clock.h"
#include "base/files.h"
#include "base/printable.h"
#include "result/metrics.h"
#include "result/summary.h"
#include "sinks/sinks.h"

namespace tprimat::results {
namespace {

struct Label {
  std::string_view key;
  std::string text;
};
using Labels = std::vector<Label>;

// https://prometheus.io/docs/practices/naming: base units, named at the end.
struct GaugeOfMetric {
  std::string_view metric, name, help;
  double factor = 1.0;  // from the metric's unit to the gauge's
};

constexpr GaugeOfMetric k_gauges[] = {
    {"tokens_per_second_per_gpu", "tokens_per_second_per_gpu", "tokens of the steady steps / their time / devices"},
    {"tokens_per_second", "tokens_per_second", "tokens of the steady steps / their time"},
    {"tflops_per_gpu", "model_flops_per_second_per_gpu", "model FLOP/s of one device", 1e12},
    {"mfu", "mfu_ratio", "model FLOP/s / dense peak of the devices"},
    {"mean_step_time", "step_time_mean_seconds", "mean of the steady steps"},
    {"median_step_time", "step_time_median_seconds", "median of the steady steps"},
    {"p95_step_time", "step_time_p95_seconds", "95th percentile of the steady steps"},
    {"step_time_cv", "step_time_variation_ratio", "standard deviation of the steady steps / their mean"},
    {"first_step_time", "first_step_time_seconds", "time of the first step"},
    {"total_time", "steps_time_seconds", "sum of all step times, warm-up included"},
    {"time_to_train", "time_to_train_seconds", "time until the target quality was reached"},
    {"peak_memory_allocated_gb", "peak_memory_allocated_bytes", "peak memory of the trainer's tensors on one device",
     1e9},
    {"peak_memory_reserved_gb", "peak_memory_reserved_bytes",
     "peak memory reserved by the trainer's allocator on one device", 1e9},
    {"peak_device_used_gb", "peak_device_used_bytes", "peak memory in use on one device as reported by the system",
     1e9},
    {"memory_allocated_share", "peak_memory_allocated_ratio", "the tensors' peak memory / that of one device"},
    {"memory_reserved_share", "peak_memory_reserved_ratio", "the allocator's peak memory / that of one device"},
    {"device_used_share", "peak_device_used_ratio", "peak memory in use / that of one device"},
    {"mean_power", "power_mean_watts", "mean power over the steady steps"},
    {"joules_per_token", "energy_per_token_joules", "energy over the steady steps / their tokens"},
    {"tokens_per_wh", "tokens_per_watt_hour", "tokens of one Wh"},
    {"usd_per_1e12_tokens", "cost_per_1e12_tokens_usd", "price of 1e12 tokens at this speed"},
    {"tokens_per_usd_hour", "tokens_per_usd", "tokens that one USD buys at this speed"},
    {"days_per_1e12_tokens", "time_per_1e12_tokens_seconds", "time for 1e12 tokens at this speed", 86400},
    {"days_per_15e12_tokens", "time_per_15e12_tokens_seconds", "time for 15e12 tokens at this speed", 86400},
    {"final_loss", "final_loss_nats", "mean loss of the last tenth of the steps"},
    {"expert_load", "fullest_expert_load_ratio", "tokens of the fullest expert / mean of the experts"},
    {"dropped_share", "dropped_tokens_ratio", "share of the token-expert assignments that were dropped"},
    {"aux_loss", "balancing_loss_nats", "balancing loss of the routers, as added to the loss"},
    {"step_time_prediction_error", "step_time_prediction_error_ratio", "predicted step time / measured, less 1"},
    {"memory_prediction_error", "memory_prediction_error_ratio", "predicted memory / measured, less 1"},
};

std::string escape_label(std::string_view text) {
  std::string escaped;
  for (const char c : printable(text, "\n")) {
    if (c == '\\')
      escaped += "\\\\";
    else if (c == '\n')
      escaped += "\\n";
    else if (c == '"')
      escaped += "\\\"";
    else
      escaped += c;
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
      if (!text.empty()) inside += fmt::format("{}{}=\"{}\"", inside.empty() ? "" : ",", key, escape_label(text));
    samples_ += fmt::format("{}{{{}}} {}\n", name_, inside, value);
  }

  std::string render() const {
    if (samples_.empty()) return "";
    return fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n{2}", name_, help_, samples_);
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
  if (result.experts) {
    labels.push_back({"routing", name_or_empty(result.experts->routing)});
    labels.push_back({"dispatcher", name_or_empty(result.experts->dispatcher)});
  }
  labels.push_back({"framework_version", result.framework_version.value_or("")});
  labels.push_back({"status", std::string(enum_name(result.status))});
  return labels;
}

class PrometheusSink : public Sink {
 public:
  explicit PrometheusSink(const std::filesystem::path& folder) : path_(folder / "tprimat.prom") {
    for (const GaugeOfMetric& gauge : k_gauges) metrics_.emplace_back(gauge.name, gauge.help);
  }

  void add(const ExportedRun& run) override {
    const RunResult& result = run.result;
    const Labels labels = labels_of(run);
    info_.add(facts_of(run), 1);
    complete_.add(labels, result.status == RunStatus::complete ? 1 : 0);
    if (const auto start = parse_timestamp(result.timestamp)) start_.add(labels, *start);
    if (const auto devices = device_count(result)) devices_.add(labels, static_cast<double>(*devices));
    if (result.performance_metrics) steps_.add(labels, static_cast<double>(result.performance_metrics->total_steps));
    const auto z_loss = result.experts ? result.experts->z_loss : std::nullopt;
    if (z_loss && std::isfinite(*z_loss)) z_loss_.add(labels, *z_loss);
    for (size_t i = 0; i < std::size(k_gauges); ++i) {
      const auto figure = find_metric(k_gauges[i].metric)->read(result);
      if (figure && std::isfinite(figure->value)) metrics_[i].add(labels, figure->value * k_gauges[i].factor);
    }
  }

  void finish() override {
    std::string text = info_.render() + complete_.render() + start_.render() + devices_.render() + steps_.render();
    for (const GaugeFamily& family : metrics_) text += family.render();
    text += z_loss_.render();
    write_file_atomically(path_, text, Survives::kill);
  }

  std::vector<std::filesystem::path> places() const override { return {path_}; }

 private:
  std::filesystem::path path_;
  GaugeFamily info_{"run_info", "labels that describe the run; always 1"};
  GaugeFamily complete_{"run_complete", "1 for a run that reached its end, 0 for one that failed or is invalid"};
  GaugeFamily start_{"run_start_timestamp_seconds", "when the run started, seconds since 1970"};
  GaugeFamily devices_{"devices", "devices of the run"};
  GaugeFamily steps_{"steps", "steps measured, warm-up included"};
  GaugeFamily z_loss_{"router_z_loss_nats", "z-loss of the routers, as added to the loss"};
  std::vector<GaugeFamily> metrics_;
};

}  // namespace

SinkKind prometheus_sink() {
  return {"prometheus", "tprimat.prom, for the textfile collector of node_exporter", open_sink<PrometheusSink>};
}

}  // namespace tprimat::results
