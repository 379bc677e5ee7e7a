#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "result/failure_kind.h"
#include "spec/model_spec.h"
#include "spec/names.h"
#include "text/fields.h"

namespace tprimat {

inline constexpr int k_schema_version = 1;

enum class RunStatus { complete, failed, interrupted, invalid };
template <>
struct EnumNames<RunStatus> {
  static constexpr std::pair<RunStatus, std::string_view> values[] = {{RunStatus::complete, "complete"},
                                                                      {RunStatus::failed, "failed"},
                                                                      {RunStatus::interrupted, "interrupted"},
                                                                      {RunStatus::invalid, "invalid"}};
};

// A figure with its 95 % confidence interval.
struct Estimate {
  double value = 0.0;
  std::optional<double> low, high;
  static constexpr auto fields() {
    return std::tuple{field("value", &Estimate::value, "the figure"),
                      field("ci95_low", &Estimate::low, "lower end of the 95 % confidence interval"),
                      field("ci95_high", &Estimate::high, "upper end of the 95 % confidence interval")};
  }
};

// The device a run used; on `cpu` the processor. Keys as older tools read them.
struct DeviceInfo {
  std::string device_name;
  std::optional<int64_t> device_count;
  std::optional<double> total_memory_gb;  // of one device
  std::optional<int64_t> gpu_cores;
  std::optional<std::string> software_stack;  // cuda, rocm, cpu
  std::optional<std::string> software_version;
  std::optional<std::string> pytorch_version;
  static constexpr auto fields() {
    using D = DeviceInfo;
    return std::tuple{field("device_name", &D::device_name, "name as the driver gives it"),
                      field("device_count", &D::device_count, "devices of the run"),
                      field("total_memory_gb", &D::total_memory_gb, "memory of one device, GB"),
                      field("gpu_cores", &D::gpu_cores, "shader cores of one device"),
                      field("software_stack", &D::software_stack, "cuda, rocm or cpu"),
                      field("software_version", &D::software_version, "version of the stack"),
                      field("pytorch_version", &D::pytorch_version, "version of PyTorch where it ran")};
  }
};

struct TrainingConfig {
  std::optional<int64_t> max_steps, global_batch_size, micro_batch_size, sequence_length, num_gpus, tokens_per_step;
  std::optional<std::string> parallel_strategy;
  std::optional<double> learning_rate, min_learning_rate, weight_decay, clip_grad_norm;
  std::optional<int64_t> warmup_steps, seed;
  std::optional<std::string> optimizer, schedule, recompute;
  static constexpr auto fields() {
    using T = TrainingConfig;
    return std::tuple{field("max_steps", &T::max_steps, "steps asked for"),
                      field("global_batch_size", &T::global_batch_size, "sequences per step"),
                      field("micro_batch_size", &T::micro_batch_size, "sequences per forward pass and rank"),
                      field("sequence_length", &T::sequence_length, "tokens per sequence"),
                      field("num_gpus", &T::num_gpus, "devices of the run"),
                      field("tokens_per_step", &T::tokens_per_step,
                            "tokens of a step over all ranks, where batch and sequence length are not both known"),
                      field("parallel_strategy", &T::parallel_strategy, "name of the layout"),
                      field("learning_rate", &T::learning_rate, "peak learning rate asked for"),
                      field("min_learning_rate", &T::min_learning_rate, "final learning rate asked for"),
                      field("weight_decay", &T::weight_decay, "decoupled weight decay"),
                      field("clip_grad_norm", &T::clip_grad_norm, "gradient norm is clipped to this"),
                      field("warmup_steps", &T::warmup_steps, "steps of learning-rate warm-up"),
                      field("seed", &T::seed, "seed of weights and data"),
                      field("optimizer", &T::optimizer, "optimizer"),
                      field("schedule", &T::schedule, "learning-rate schedule"),
                      field("recompute", &T::recompute, "activations computed again: none, selective, full")};
  }
};

struct ParallelismConfig {
  std::optional<std::string> strategy_name;
  std::optional<int64_t> tensor_model_parallel_size, pipeline_model_parallel_size, data_parallel_size,
      context_parallel_size, gradient_accumulation_steps, virtual_pipeline_model_parallel_size, zero_stage;
  std::optional<bool> sequence_parallel, embedding_and_loss_as_layers;
  static constexpr auto fields() {
    using P = ParallelismConfig;
    return std::tuple{field("strategy_name", &P::strategy_name, "name of the layout"),
                      field("tensor_model_parallel_size", &P::tensor_model_parallel_size, "TP"),
                      field("pipeline_model_parallel_size", &P::pipeline_model_parallel_size, "PP"),
                      field("data_parallel_size", &P::data_parallel_size, "DP"),
                      field("context_parallel_size", &P::context_parallel_size, "CP"),
                      field("gradient_accumulation_steps", &P::gradient_accumulation_steps, "GA"),
                      field("virtual_pipeline_model_parallel_size", &P::virtual_pipeline_model_parallel_size,
                            "VP: pipeline stages of a rank"),
                      field("zero_stage", &P::zero_stage,
                            "ZeRO: the data-parallel ranks share 1 optimizer states, 2 gradients too, 3 weights too"),
                      field("embedding_and_loss_as_layers", &P::embedding_and_loss_as_layers,
                            "the embedding and the loss count as a layer each where the pipeline cuts the model"),
                      field("sequence_parallel", &P::sequence_parallel, "SP: norms split over the TP group")};
  }
};

// Of the steady steps, except total_steps, total_time_seconds. tokens_per_second is tokens of the steady steps / their
// time.
struct PerformanceMetrics {
  int64_t total_steps = 0;
  double total_time_seconds = 0.0;
  std::optional<double> avg_step_time_seconds, min_step_time_seconds, max_step_time_seconds, steps_per_second,
      tokens_per_second, tokens_per_second_per_gpu;
  static constexpr auto fields() {
    using P = PerformanceMetrics;
    return std::tuple{
        field("total_steps", &P::total_steps, "steps measured, warm-up included"),
        field("total_time_seconds", &P::total_time_seconds, "sum of all step times, warm-up included, s"),
        field("avg_step_time_seconds", &P::avg_step_time_seconds, "mean of the steady steps, s"),
        field("min_step_time_seconds", &P::min_step_time_seconds, "fastest steady step, s"),
        field("max_step_time_seconds", &P::max_step_time_seconds, "slowest steady step, s"),
        field("steps_per_second", &P::steps_per_second, "steady steps / their time"),
        field("tokens_per_second", &P::tokens_per_second, "tokens of the steady steps / their time"),
        field("tokens_per_second_per_gpu", &P::tokens_per_second_per_gpu, "the same / devices of the run")};
  }
};

// Allocated, reserved and device-used are three different things; measurement_method says which source filled them.
struct MemoryMetrics {
  std::optional<double> avg_memory_allocated_gb, peak_memory_allocated_gb, avg_memory_reserved_gb,
      peak_memory_reserved_gb, peak_device_used_gb;
  std::optional<std::string> measurement_method;
  static constexpr auto fields() {
    using M = MemoryMetrics;
    return std::tuple{
        field("avg_memory_allocated_gb", &M::avg_memory_allocated_gb,
              "mean over steps of what the trainer allocated, GB"),
        field("peak_memory_allocated_gb", &M::peak_memory_allocated_gb, "most the trainer allocated, GB"),
        field("avg_memory_reserved_gb", &M::avg_memory_reserved_gb, "mean of what its allocator held, GB"),
        field("peak_memory_reserved_gb", &M::peak_memory_reserved_gb, "most its allocator held, GB"),
        field("peak_device_used_gb", &M::peak_device_used_gb,
              "most the device or process used as the system saw it, GB"),
        field("measurement_method", &M::measurement_method, "who measured")};
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
    return std::tuple{field("name", &M::name, "key of the model"), field("full_name", &M::full_name, "name for people"),
                      field("num_parameters", &M::num_parameters, "exact parameter count"),
                      field("trainable_parameters", &M::trainable_parameters,
                            "parameters that the optimizer updates (adapters, or those not frozen); absent: all"),
                      field("shape", &M::shape, "shape of the model")};
  }
};

// Which steps were left out of the steady state, and why.
struct Warmup {
  int64_t steps_excluded = 0;
  std::string method;  // "change_point", "fixed", "first_step"
  std::string reason;
  bool steady = true;  // false: the series never settles
  static constexpr auto fields() {
    using W = Warmup;
    return std::tuple{field("steps_excluded", &W::steps_excluded, "steps left out at the start"),
                      field("method", &W::method, "how the end of the warm-up was found"),
                      field("reason", &W::reason, "in words"),
                      field("steady", &W::steady, "false when the series never settles")};
  }
};

// Of the steady step times, in seconds.
struct StepStatistics {
  int64_t count = 0;
  double median = 0, mean = 0, stddev = 0, p5 = 0, p95 = 0, cv = 0;
  std::optional<double> ci95_low, ci95_high;  // of the mean: stats/mean_estimate.h
  std::optional<std::string> interval_method =
      {};                         // behind every interval of the result; absent: it has none, or an older file
  std::vector<int64_t> outliers;  // step numbers with |x - median| / (1.4826 MAD) > 10; labelled, not removed
  static constexpr auto fields() {
    using S = StepStatistics;
    return std::tuple{field("count", &S::count, "steady steps"),
                      field("median", &S::median, "s"),
                      field("mean", &S::mean, "s"),
                      field("stddev", &S::stddev, "s"),
                      field("p5", &S::p5, "5th percentile, s"),
                      field("p95", &S::p95, "95th percentile, s"),
                      field("cv", &S::cv, "stddev / mean"),
                      field("ci95_low", &S::ci95_low, "lower end of the 95 % interval of the mean, s"),
                      field("ci95_high", &S::ci95_high, "upper end, s"),
                      field("interval_method", &S::interval_method,
                            "how this interval and those of the derived figures were made: docs/method.md"),
                      field("outliers", &S::outliers, "steps labelled as outliers")};
  }
};

// The denominator of MFU, and where it comes from.
struct PeakInfo {
  std::string id;                 // "catalogue:H100-SXM-80GB:bf16", "measured:cpu:bf16", "config:..."
  double flops_per_second = 0.0;  // dense, one device
  std::string source;
  std::optional<double> memory_bytes_per_second = {};  // of one device
  std::optional<std::string> memory_source = {};
  static constexpr auto fields() {
    using P = PeakInfo;
    return std::tuple{field("id", &P::id, "which peak"),
                      field("flops_per_second", &P::flops_per_second, "dense peak of one device, FLOP/s"),
                      field("source", &P::source, "where the figure comes from"),
                      field("memory_bytes_per_second", &P::memory_bytes_per_second,
                            "main memory's bandwidth for one device (STREAM's triad), measured with the peak, B/s"),
                      field("memory_source", &P::memory_source, "how it was measured")};
  }
};

struct Derived {
  std::map<std::string, double> flops_per_token;  // by formula id
  std::string headline_formula;                   // id of the formula that `mfu` uses
  std::optional<PeakInfo> peak;
  std::optional<Estimate> tokens_per_second, tokens_per_second_per_gpu, tflops_per_gpu, mfu;
  std::map<std::string, double> mfu_by_formula;
  std::optional<Estimate> joules_per_token, usd_per_1e12_tokens;
  std::optional<double> usd_per_hour;  // price behind usd_per_1e12_tokens, all devices of the run
  static constexpr auto fields() {
    using D = Derived;
    return std::tuple{field("flops_per_token", &D::flops_per_token, "model FLOPs of forward and backward, by formula"),
                      field("headline_formula", &D::headline_formula, "formula of mfu and tflops_per_gpu"),
                      field("peak", &D::peak, "denominator of MFU"),
                      field("tokens_per_second", &D::tokens_per_second, "tokens/s of the run"),
                      field("tokens_per_second_per_gpu", &D::tokens_per_second_per_gpu, "tokens/s per device"),
                      field("tflops_per_gpu", &D::tflops_per_gpu, "model TFLOP/s per device"),
                      field("mfu", &D::mfu, "model FLOP/s / (devices x dense peak), a fraction"),
                      field("mfu_by_formula", &D::mfu_by_formula, "the same for every formula"),
                      field("joules_per_token", &D::joules_per_token, "energy per token, J"),
                      field("usd_per_1e12_tokens", &D::usd_per_1e12_tokens, "cost of 1e12 tokens, USD"),
                      field("usd_per_hour", &D::usd_per_hour, "price of all devices of the run, USD per hour")};
  }
};

// What the planner said of the run, from its specification and the device alone (docs/planner.md).
struct Prediction {
  std::optional<double> memory_gb, step_time_seconds;
  std::string family;  // "megatron_core"
  std::optional<std::string> machine;
  std::string parameters;
  std::optional<bool> calibrated;
  std::optional<std::string> not_predicted;
  static constexpr auto fields() {
    using P = Prediction;
    return std::tuple{
        field("memory_gb", &P::memory_gb, "predicted memory of the device that needs most, GB"),
        field("step_time_seconds", &P::step_time_seconds, "predicted time of a steady step, s"),
        field("family", &P::family, "program whose traits and parameters the planner used"),
        field("machine", &P::machine, "machine whose facts and parameters it used; absent: no time is predicted"),
        field("parameters", &P::parameters, "its parameters: built-in, or the file they were read from"),
        field("calibrated", &P::calibrated, "measurements of that architecture stand behind the predicted time"),
        field("not_predicted", &P::not_predicted, "what the planner does not predict")};
  }
};

struct TelemetrySummary {
  std::string source;  // "proc", "rapl", "nvml" ...
  int64_t samples = 0;
  std::optional<double> interval_seconds, mean_utilisation, others_busy_threads;
  std::optional<double> mean_power_watts, energy_joules, peak_memory_used_gb;
  std::optional<double> mean_temperature_celsius = {}, mean_clock_hz = {}, mean_memory_clock_hz = {};
  std::optional<std::map<std::string, double>> throttle_shares = {};
  std::optional<bool> energy_valid;
  std::optional<std::string> energy_note;
  std::optional<std::vector<std::string>> notes = {};
  static constexpr auto fields() {
    using T = TelemetrySummary;
    return std::tuple{
        field("source", &T::source, "who measured"),
        field("samples", &T::samples, "number of samples"),
        field("interval_seconds", &T::interval_seconds, "time between samples, s"),
        field("mean_utilisation", &T::mean_utilisation, "share of the device's capacity, 0..1"),
        field("others_busy_threads", &T::others_busy_threads,
              "hardware threads that other processes kept busy on a machine that had none to spare"),
        field("mean_power_watts", &T::mean_power_watts, "W"),
        field("energy_joules", &T::energy_joules, "J over the steady steps"),
        field("peak_memory_used_gb", &T::peak_memory_used_gb, "resident memory of the run's processes, GB"),
        field("mean_temperature_celsius", &T::mean_temperature_celsius, "of the device, degrees Celsius"),
        field("mean_clock_hz", &T::mean_clock_hz, "of its cores, Hz"),
        field("mean_memory_clock_hz", &T::mean_memory_clock_hz, "of its memory, Hz"),
        field("throttle_shares", &T::throttle_shares,
              "share of the readings in which the clock was held down, 0..1, by reason: power, thermal, current, "
              "hardware, clock_set"),
        field("energy_valid", &T::energy_valid, "false when the energy figure must not be used"),
        field("energy_note", &T::energy_note, "why not, or how it was measured"),
        field("notes", &T::notes, "figures that the sensor did not give, and why")};
  }
};

// What the sensors said while each step ran: one value per entry of step_times, null where no reading fell into it.
struct StepTelemetry {
  std::optional<std::vector<double>> power_watts, lowest_clock_hz, highest_temperature_celsius, utilisation,
      others_busy_threads;
  std::optional<std::map<std::string, std::vector<double>>> throttle_shares;
  static constexpr auto fields() {
    using T = StepTelemetry;
    return std::tuple{
        field("power_watts", &T::power_watts, "mean power of all devices together, W"),
        field("lowest_clock_hz", &T::lowest_clock_hz, "mean clock of the device that had the lowest one, Hz"),
        field("highest_temperature_celsius", &T::highest_temperature_celsius, "of any device, degrees Celsius"),
        field("utilisation", &T::utilisation, "share of the devices' capacity, 0..1; on cpu of the run's threads"),
        field("others_busy_threads", &T::others_busy_threads,
              "hardware threads that other processes kept busy while the machine had none to spare, else 0"),
        field("throttle_shares", &T::throttle_shares,
              "share of the readings in which a device's clock was held down, 0..1, by reason as in `telemetry`; only "
              "reasons that were seen")};
  }
};

struct SourceInfo {
  std::optional<std::string> log = {}, steps_file = {}, format = {};
  std::optional<double> confidence = {};
  std::optional<std::string> step_time = {};
  std::optional<int64_t> lines = {}, first_line = {}, last_line = {}, records = {}, attempts = {}, attempt = {};
  static constexpr auto fields() {
    using S = SourceInfo;
    return std::tuple{
        field("log", &S::log, "path of the log"),
        field("steps_file", &S::steps_file, "path of the step records"),
        field("format", &S::format, "format that was read"),
        field("confidence", &S::confidence, "that the log is of that format, 0..1; absent: it was not detected"),
        field("step_time", &S::step_time, "printed, from_rate or from_timestamps: whether step times are derived"),
        field("lines", &S::lines, "lines of the log"),
        field("first_line", &S::first_line, "line of the first step record, from 1"),
        field("last_line", &S::last_line, "line of the last step record"),
        field("records", &S::records, "lines that report a step, copies by other ranks included"),
        field("attempts", &S::attempts, "attempts in the whole log, of all its runs"),
        field("attempt", &S::attempt, "attempt of the log that the steps and settings belong to, from 1")};
  }
};

// What was asked for against what the framework reports it did. `asked` is absent where only the log is known.
struct AuditEntry {
  std::string key;
  std::optional<std::string> asked;
  std::string effective;
  static constexpr auto fields() {
    using A = AuditEntry;
    return std::tuple{field("key", &A::key, "setting"), field("asked", &A::asked, "value asked for"),
                      field("effective", &A::effective, "value the framework reported")};
  }
};

// A figure of a file that its own inputs deny.
struct Contradiction {
  // In doubt: the speed, the model, devices and batch, a figure, work that the framework printed otherwise.
  enum class Kind { rate, shape, layout, figure, settings };
  std::string what, stated, derived;
  Kind kind = Kind::figure;
};

// Something that the log reports beside its steps.
struct RunEvent {
  std::string kind;  // out_of_memory, collective_timeout, nan, skipped_update, evaluation, checkpoint, killed, failed,
                     // restart, timeout, device_error
  std::optional<int64_t> line, step, rank;
  std::optional<double> seconds, value;
  std::string text;
  static constexpr auto fields() {
    using E = RunEvent;
    return std::tuple{
        field("kind", &E::kind, "what happened"),
        field("line", &E::line, "line of the log, from 1"),
        field("step", &E::step,
              "the step it names, else the last one before it; of a NaN or a skipped update the next"),
        field("rank", &E::rank, "rank that reported it"),
        field("seconds", &E::seconds, "how long it took, s"),
        field("value", &E::value, "loss of an evaluation, nats; number of skipped updates where it is not 1"),
        field("text", &E::text, "in words")};
  }
};

// A step that is left out of the steady state, because its time is not that of a training step alone.
struct LabelledStep {
  int64_t step = 0;
  std::string label;  // evaluation, checkpoint, restart, mean_of_two, other_batch
  static constexpr auto fields() {
    using L = LabelledStep;
    return std::tuple{field("step", &L::step, "number of the step"), field("label", &L::label, "what its time holds")};
  }
};

struct RankMemoryEntry {
  std::optional<int64_t> rank;
  std::string kind;  // allocated, peak_allocated, reserved, peak_reserved, device_used, device_total
  double gb = 0.0;
  static constexpr auto fields() {
    using M = RankMemoryEntry;
    return std::tuple{field("rank", &M::rank, "rank; absent: the log does not say"),
                      field("kind", &M::kind, "what was measured"), field("gb", &M::gb, "highest value, GB")};
  }
};

// Figures that the framework itself printed, one per entry of step_times; null where it did not. They follow its own
// formulas and its own peak, and nothing is derived from them unless source.step_time says so.
struct ReportedFigures {
  std::optional<std::vector<double>> tflops_per_gpu, mfu, tokens_per_second, tokens_per_second_per_gpu,
      samples_per_second, loss_scale, power_watts_per_gpu, energy_joules_per_gpu, unix_time;
  static constexpr auto fields() {
    using R = ReportedFigures;
    return std::tuple{
        field("tflops_per_gpu", &R::tflops_per_gpu, "1e12 FLOP/s per device, by the framework's formula"),
        field("mfu", &R::mfu, "fraction, by the framework's formula and peak"),
        field("tokens_per_second", &R::tokens_per_second, "of all devices"),
        field("tokens_per_second_per_gpu", &R::tokens_per_second_per_gpu, "of one device"),
        field("samples_per_second", &R::samples_per_second, "sequences/s of all devices"),
        field("loss_scale", &R::loss_scale, "loss scale of fp16 training"),
        field("power_watts_per_gpu", &R::power_watts_per_gpu, "W of one device"),
        field("energy_joules_per_gpu", &R::energy_joules_per_gpu, "J of one device and step"),
        field("unix_time", &R::unix_time, "time stamp of the record, s since 1970; the log's clock read as UTC")};
  }
};

// What belongs to the entries of step_times when these are not simply steps 1, 2, 3 ...
struct StepSeries {
  int64_t counts_from = 1;
  std::optional<std::vector<int64_t>> numbers, mean_of;
  std::optional<std::vector<double>> time_low, time_high;
  std::vector<LabelledStep> labelled;
  static constexpr auto fields() {
    using S = StepSeries;
    return std::tuple{field("counts_from", &S::counts_from, "number of a training's first step, 0 or 1"),
                      field("numbers", &S::numbers, "number of each step as the log counts it"),
                      field("mean_of", &S::mean_of, "steps that each entry is the mean of"),
                      field("time_low", &S::time_low, "the log rounds its step times: the least that each can be, s"),
                      field("time_high", &S::time_high, "the most that each can be, s"),
                      field("labelled", &S::labelled, "steps left out of the steady state")};
  }
};

// One run, from launch to exit, in the form that every tool reads. A figure that is not known is absent.
struct RunResult {
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
  std::optional<std::map<std::string, int64_t>> event_counts;
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
    return std::tuple{
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
        field("dataset", &R::dataset, "where the tokens came from"),
        field("gpu_info", &R::gpu_info, "the device"),
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
        field("memory_values", &R::memory_values, "allocated memory after each step, GB")};
  }
};

}  // namespace tprimat
