#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "result/failure_kind.h"
#include "result/run_figures.h"
#include "result/run_records.h"
#include "result/run_settings.h"
#include "spec/names.h"
#include "text/fields.h"

namespace tprimat {

inline constexpr int k_schema_version = 1;

enum class RunStatus { complete, failed, interrupted, invalid };
constexpr auto enum_table(RunStatus) {
  return std::to_array<std::pair<RunStatus, std::string_view>>({{RunStatus::complete, "complete"},
                                                                {RunStatus::failed, "failed"},
                                                                {RunStatus::interrupted, "interrupted"},
                                                                {RunStatus::invalid, "invalid"}});
}

// One run, from launch to exit, in the form that every tool reads. A figure that is not known is absent.
struct RunResult {
  // Defined in one source: of a hundred members they are long, and sixty sources need them.
  RunResult();
  RunResult(const RunResult&);
  RunResult(RunResult&&) noexcept;
  RunResult& operator=(const RunResult&);
  RunResult& operator=(RunResult&&) noexcept;
  ~RunResult();

  int64_t schema_version = k_schema_version;
  RunStatus status = RunStatus::complete;
  std::optional<std::string> status_reason;  // for every status but complete
  std::optional<FailureKind> failure_kind;   // of a run that failed or is invalid
  std::optional<int64_t> failed_rank;        // the first to fail, where the log names it
  std::optional<int64_t> attempt;            // from 1, where failed runs are tried again
  std::optional<Platform> platform;
  std::optional<Framework> framework;
  std::optional<std::string> framework_version;
  std::string timestamp;
  ModelInfo model_info;
  std::optional<Precision> precision;
  std::optional<std::string> dataset;
  DeviceInfo gpu_info;
  TrainingConfig training_config;
  ParallelismConfig parallelism_config;
  std::optional<PerformanceMetrics> performance_metrics;
  MemoryMetrics memory_metrics;
  Warmup warmup;
  std::optional<StepStatistics> statistics;
  Derived derived;
  std::optional<Prediction> prediction;
  std::vector<TelemetrySummary> telemetry;
  std::optional<StepTelemetry> step_telemetry;
  std::map<std::string, std::string> environment;
  std::optional<std::string> config_hash;
  std::vector<AuditEntry> config_audit;
  std::optional<std::map<std::string, std::string>> effective_config;
  SourceInfo source;
  std::optional<StepSeries> steps;
  std::optional<ReportedFigures> reported;
  std::optional<std::vector<RankMemoryEntry>> memory_by_rank;
  std::optional<std::vector<RunEvent>> events;
  std::optional<std::map<EventKind, int64_t>> event_counts;
  std::optional<int64_t> skipped_updates;  // steps that left the weights as they were; absent: none is known of
  std::vector<std::string> warnings;
  std::vector<double> step_times;   // s, one per step, warm-up included
  std::vector<double> loss_values;  // NaN (null) where a step had none or saw a NaN
  std::vector<double> learning_rates;
  std::vector<double> grad_norms;
  std::vector<double> memory_values;          // allocated, GB
  std::vector<Contradiction> contradictions;  // found when a file was read; never written

  static constexpr auto fields() {
    using R = RunResult;
    return field_list(
        field("schema_version", &R::schema_version, "version of this schema"),
        field("status", &R::status, "how the run ended"),
        field("status_reason", &R::status_reason, "why it did not complete"),
        field("failure_kind", &R::failure_kind, "what made it fail, as a word"),
        field("failed_rank", &R::failed_rank, "rank that failed first, where the log names it"),
        field("attempt", &R::attempt, "which attempt this is, from 1, where failed runs are tried again"),
        field("platform", &R::platform, "nvd, amd or cpu; null where a log does not say"),
        field("framework", &R::framework, "what trained"),
        field("framework_version", &R::framework_version, "its version"),
        field("timestamp", &R::timestamp, "when the run started, UTC"),
        field("model_info", &R::model_info, "the model"),
        field("precision", &R::precision, "number format of the matrix products"),
        field("dataset", &R::dataset, "where the tokens came from"), field("gpu_info", &R::gpu_info, "the device"),
        field("training_config", &R::training_config, "what was asked of the training"),
        field("parallelism_config", &R::parallelism_config, "layout over devices"),
        field("performance_metrics", &R::performance_metrics, "speed"),
        field("memory_metrics", &R::memory_metrics, "memory"),
        field("warmup", &R::warmup, "steps left out of the steady state"),
        field("statistics", &R::statistics, "of the steady step times"),
        field("derived", &R::derived, "figures computed from the above by named formulas"),
        field("prediction", &R::prediction, "what the planner said of the run; absent: it was not asked"),
        field("telemetry", &R::telemetry, "what the machine's sensors said"),
        field("step_telemetry", &R::step_telemetry, "what they said while each step ran"),
        field("environment", &R::environment, "fingerprint of machine and software"),
        field("config_hash", &R::config_hash, "hash of the training asked for"),
        field("config_audit", &R::config_audit,
              "settings where the framework did something else than asked; of a log alone, what it reports"),
        field("effective_config", &R::effective_config, "settings as the framework printed them"),
        field("source", &R::source, "files these figures came from"),
        field("steps", &R::steps, "numbers and labels of the entries of step_times"),
        field("reported", &R::reported, "figures by the framework's own formulas"),
        field("memory_by_rank", &R::memory_by_rank, "highest memory of each rank, by meaning"),
        field("events", &R::events, "what the log reports beside its steps; at most a thousand of a kind"),
        field("event_counts", &R::event_counts, "how often each kind of event was reported"),
        field("skipped_updates", &R::skipped_updates,
              "steps whose update was skipped (overflow, NaN, spike); absent: not known"),
        field("warnings", &R::warnings, "what a reader must know before trusting the figures"),
        field("step_times", &R::step_times, "duration of each step, s"),
        field("loss_values", &R::loss_values, "loss of each step, nats"),
        field("learning_rates", &R::learning_rates, "learning rate of each step"),
        field("grad_norms", &R::grad_norms, "global gradient norm of each step"),
        field("memory_values", &R::memory_values, "allocated memory after each step, GB"));
  }
};

}  // namespace tprimat
