#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "result/expert_figures.h"
#include "result/kinds.h"
#include "result/machine_finding.h"
#include "result/run_figures.h"
#include "result/run_profile.h"
#include "result/run_records.h"
#include "result/time_to_train.h"
#include "result/training_settings.h"
#include "spec/model_spec.h"
#include "spec/names.h"
#include "text/fields.h"

namespace tprimat {

// The setup of a RunResult: model, device, training.

// The device a run used; on `cpu` the processor. Keys as older tools read them.
struct DeviceInfo {
  std::string device_name;
  std::optional<int64_t> device_count;
  std::optional<double> total_memory_gb;      // of one device
  std::optional<int64_t> gpu_cores;           // CUDA cores or stream processors: not comparable between vendors
  std::optional<std::string> software_stack;  // cuda, rocm, cpu
  std::optional<std::string> software_version;
  std::optional<std::string> pytorch_version;
  std::optional<int64_t> compute_units;
  static constexpr auto fields() {
    using D = DeviceInfo;
    return field_list(field("device_name", &D::device_name, "name as the driver gives it"),
                      field("device_count", &D::device_count, "devices of the run"),
                      field("total_memory_gb", &D::total_memory_gb, "memory of one device, GB"),
                      field("gpu_cores", &D::gpu_cores, "CUDA cores (NVIDIA) or stream processors (AMD) of one device"),
                      field("software_stack", &D::software_stack, "cuda, rocm or cpu"),
                      field("software_version", &D::software_version, "version of the stack"),
                      field("pytorch_version", &D::pytorch_version, "version of PyTorch where it ran"),
                      field("compute_units", &D::compute_units,
                            "SMs (NVIDIA) or compute units (AMD) of one device, as its driver reports them"));
  }
};

struct TrainingConfig : TrainingSettings {
  std::optional<int64_t> num_gpus, tokens_per_step;
  std::optional<std::string> parallel_strategy, loaded_checkpoint;
  std::optional<int64_t> loaded_step;
  static constexpr auto fields() {
    using T = TrainingConfig;
    return field_list(field("max_steps", &T::max_steps, "requested steps"),
                      field("global_batch_size", &T::global_batch_size, "sequences per step"),
                      field("micro_batch_size", &T::micro_batch_size, "sequences per forward pass and rank"),
                      field("sequence_length", &T::sequence_length, "tokens per sequence"),
                      field("num_gpus", &T::num_gpus, "devices of the run"),
                      field("tokens_per_step", &T::tokens_per_step,
                            "tokens of a step over all ranks, where batch and sequence length are not both known"),
                      field("parallel_strategy", &T::parallel_strategy, "name of the layout"),
                      field("learning_rate", &T::learning_rate, "requested peak learning rate"),
                      field("min_learning_rate", &T::min_learning_rate, "requested final learning rate"),
                      field("weight_decay", &T::weight_decay, "decoupled weight decay"),
                      field("clip_grad_norm", &T::clip_grad_norm, "gradient norm is clipped to this"),
                      field("warmup_steps", &T::warmup_steps, "steps of learning-rate warm-up"),
                      field("seed", &T::seed, "seed of weights and data"),
                      field("optimizer", &T::optimizer, "optimizer"),
                      field("schedule", &T::schedule, "learning-rate schedule"),
                      field("recompute", &T::recompute, "activations computed again: none, selective, full"),
                      field("loaded_checkpoint", &T::loaded_checkpoint,
                            "folder of the checkpoint that the training continued; absent: it began anew"),
                      field("loaded_step", &T::loaded_step, "step of that checkpoint"));
  }
};

struct ParallelismConfig {
  std::optional<std::string> strategy_name;
  std::optional<int64_t> tensor_model_parallel_size, pipeline_model_parallel_size, data_parallel_size,
      context_parallel_size, gradient_accumulation_steps, virtual_pipeline_model_parallel_size,
      expert_model_parallel_size, expert_tensor_parallel_size, zero_stage;
  std::optional<bool> sequence_parallel, embedding_and_loss_as_layers;
  static constexpr auto fields() {
    using P = ParallelismConfig;
    return field_list(field("strategy_name", &P::strategy_name, "name of the layout"),
                      field("tensor_model_parallel_size", &P::tensor_model_parallel_size, "TP"),
                      field("pipeline_model_parallel_size", &P::pipeline_model_parallel_size, "PP"),
                      field("data_parallel_size", &P::data_parallel_size, "DP"),
                      field("context_parallel_size", &P::context_parallel_size, "CP"),
                      field("gradient_accumulation_steps", &P::gradient_accumulation_steps, "GA"),
                      field("virtual_pipeline_model_parallel_size", &P::virtual_pipeline_model_parallel_size,
                            "VP: pipeline stages of a rank"),
                      field("expert_model_parallel_size", &P::expert_model_parallel_size, "EP"),
                      field("expert_tensor_parallel_size", &P::expert_tensor_parallel_size, "ETP"),
                      field("zero_stage", &P::zero_stage,
                            "ZeRO: the data-parallel ranks shard 1 optimizer states, 2 also gradients, 3 also weights"),
                      field("embedding_and_loss_as_layers", &P::embedding_and_loss_as_layers,
                            "the embedding and the loss count as one layer each when the pipeline splits the model"),
                      field("sequence_parallel", &P::sequence_parallel, "SP: norms split over the TP group"));
  }
};

struct ModelInfo {
  std::string name;
  std::optional<std::string> full_name;
  std::optional<int64_t> num_parameters;
  std::optional<int64_t> trainable_parameters = {};  // absent: all of them
  std::optional<ModelSpec> shape;
  static constexpr auto fields() {
    using M = ModelInfo;
    return field_list(field("name", &M::name, "key of the model"), field("full_name", &M::full_name, "name for people"),
                      field("num_parameters", &M::num_parameters, "exact parameter count"),
                      field("trainable_parameters", &M::trainable_parameters,
                            "parameters that the optimizer updates (adapters, or those not frozen); absent: all"),
                      field("shape", &M::shape, "shape of the model"));
  }
};

inline constexpr int k_schema_version = 1;

enum class RunStatus { complete, failed, interrupted, invalid };

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
  std::optional<std::string> framework_installation;  // its label, where the configuration has several
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
  std::optional<ExpertFigures> experts;      // of a mixture of experts; absent: nothing is known of its routing
  std::optional<TimeToTrain> time_to_train;  // of a training that ends at a target quality
  std::optional<Prediction> prediction;
  std::vector<TelemetrySummary> telemetry;
  std::optional<StepTelemetry> step_telemetry;
  std::optional<DoctorReport> doctor;  // absent: the machine was not examined
  std::map<std::string, std::string> environment;
  std::optional<std::string> config_hash;
  std::vector<AuditEntry> config_audit;
  std::optional<std::map<std::string, std::string>> effective_config;
  SourceInfo source;
  std::optional<StepSeries> steps;
  std::optional<ReportedFigures> reported;
  std::optional<RunProfile> profile;  // absent: no step was profiled
  std::optional<std::vector<RankMemoryEntry>> memory_by_rank;
  std::optional<std::vector<RunEvent>> events;
  std::optional<std::map<EventKind, int64_t>> event_counts;
  std::optional<int64_t> skipped_updates;                  // steps that left the weights unchanged; absent: not known
  std::optional<std::vector<std::string>> default_choice;  // absent: a configuration stated the training
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
        field("failure_kind", &R::failure_kind, "kind of the failure"),
        field("failed_rank", &R::failed_rank, "rank that failed first, where the log names it"),
        field("attempt", &R::attempt, "number of the attempt, from 1, if failed runs are repeated"),
        field("platform", &R::platform, "nvd, amd or cpu; null if a log does not state it"),
        field("framework", &R::framework, "framework that trained"),
        field("framework_installation", &R::framework_installation,
              "label of the framework's installation, where the configuration has several"),
        field("framework_version", &R::framework_version, "its version"),
        field("timestamp", &R::timestamp, "when the run started, UTC"),
        field("model_info", &R::model_info, "the model"),
        field("precision", &R::precision, "number format of the matrix products"),
        field("dataset", &R::dataset, "where the tokens came from"), field("gpu_info", &R::gpu_info, "the device"),
        field("training_config", &R::training_config, "requested settings of the training"),
        field("parallelism_config", &R::parallelism_config, "layout over devices"),
        field("performance_metrics", &R::performance_metrics, "speed"),
        field("memory_metrics", &R::memory_metrics, "memory"),
        field("warmup", &R::warmup, "steps left out of the steady state"),
        field("statistics", &R::statistics, "of the steady step times"),
        field("derived", &R::derived, "figures computed from the above by named formulas"),
        field("experts", &R::experts, "routing of a mixture of experts; absent: unknown"),
        field("time_to_train", &R::time_to_train, "time to a target quality; absent: the training has none"),
        field("prediction", &R::prediction, "the planner's prediction for the run; absent: none was made"),
        field("telemetry", &R::telemetry, "readings of the machine's sensors"),
        field("step_telemetry", &R::step_telemetry, "readings of these sensors during each step"),
        field("doctor", &R::doctor, "what tprimat doctor found just before the run; absent: nothing was examined"),
        field("environment", &R::environment, "fingerprint of machine and software"),
        field("config_hash", &R::config_hash, "hash of the requested training"),
        field("config_audit", &R::config_audit,
              "settings that differ from the request; for a log alone, those that it reports"),
        field("effective_config", &R::effective_config, "settings as the framework printed them"),
        field("source", &R::source, "files these figures came from"),
        field("steps", &R::steps, "numbers and labels of the entries of step_times"),
        field("reported", &R::reported, "figures by the framework's own formulas"),
        field("profile", &R::profile, "steps profiled after the measured ones; absent: none"),
        field("memory_by_rank", &R::memory_by_rank, "highest memory of each rank, by meaning"),
        field("events", &R::events, "events that the log reports; at most a thousand of a kind"),
        field("event_counts", &R::event_counts, "how often each kind of event was reported"),
        field("skipped_updates", &R::skipped_updates,
              "steps whose update was skipped (overflow, NaN, spike); absent: not known"),
        field("default_choice", &R::default_choice,
              "what the built-in default chose for this machine's GPUs, and why; absent: a configuration stated it"),
        field("warnings", &R::warnings, "what to know before trusting the figures"),
        field("step_times", &R::step_times, "duration of each step, s"),
        field("loss_values", &R::loss_values, "loss of each step, nats"),
        field("learning_rates", &R::learning_rates, "learning rate of each step"),
        field("grad_norms", &R::grad_norms, "global gradient norm of each step"),
        field("memory_values", &R::memory_values, "allocated memory after each step, GB"));
  }
};

struct TrainSpec;

// The facts of a run that its specification states: model, precision, data, training and layout. The suite writes them
// into the result, and verification compares the result with the specification.
void fill_asked_facts(RunResult& result, const TrainSpec& spec);

}  // namespace tprimat
