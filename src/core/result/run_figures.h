#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "result/kinds.h"
#include "spec/names.h"
#include "text/fields.h"

namespace tprimat {

// The figures of a RunResult: speed, memory, statistics, peak, prediction.

// A figure with its 95 % confidence interval.
struct Estimate {
  double value = 0.0;
  std::optional<double> low, high;
  static constexpr auto fields() {
    return field_list(field("value", &Estimate::value, "the figure"),
                      field("ci95_low", &Estimate::low, "lower end of the 95 % confidence interval"),
                      field("ci95_high", &Estimate::high, "upper end of the 95 % confidence interval"));
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
    return field_list(
        field("total_steps", &P::total_steps, "steps measured, warm-up included"),
        field("total_time_seconds", &P::total_time_seconds, "sum of all step times, warm-up included, s"),
        field("avg_step_time_seconds", &P::avg_step_time_seconds, "mean of the steady steps, s"),
        field("min_step_time_seconds", &P::min_step_time_seconds, "fastest steady step, s"),
        field("max_step_time_seconds", &P::max_step_time_seconds, "slowest steady step, s"),
        field("steps_per_second", &P::steps_per_second, "steady steps / their time"),
        field("tokens_per_second", &P::tokens_per_second, "tokens of the steady steps / their time"),
        field("tokens_per_second_per_gpu", &P::tokens_per_second_per_gpu, "the same / devices of the run"));
  }
};

// Allocated, reserved and device-used are three different things; measurement_method says which source filled them.
struct MemoryMetrics {
  std::optional<double> avg_memory_allocated_gb, peak_memory_allocated_gb, avg_memory_reserved_gb,
      peak_memory_reserved_gb, peak_device_used_gb;
  std::optional<std::string> measurement_method;
  static constexpr auto fields() {
    using M = MemoryMetrics;
    return field_list(
        field("avg_memory_allocated_gb", &M::avg_memory_allocated_gb, "mean memory that the trainer allocated, GB"),
        field("peak_memory_allocated_gb", &M::peak_memory_allocated_gb, "peak memory that the trainer allocated, GB"),
        field("avg_memory_reserved_gb", &M::avg_memory_reserved_gb, "mean memory that its allocator held, GB"),
        field("peak_memory_reserved_gb", &M::peak_memory_reserved_gb, "peak memory that its allocator held, GB"),
        field("peak_device_used_gb", &M::peak_device_used_gb,
              "peak memory that the device or process used, as reported by the system, GB"),
        field("measurement_method", &M::measurement_method, "who measured"));
  }
};

// Which steps were left out of the steady state, and why.
struct Warmup {
  int64_t steps_excluded = 0;
  WarmupMethod method = WarmupMethod::none;
  std::string reason;
  bool steady = true;  // false: the series never settles
  static constexpr auto fields() {
    using W = Warmup;
    return field_list(field("steps_excluded", &W::steps_excluded, "steps left out at the start"),
                      field("method", &W::method, "how the end of the warm-up was found"),
                      field("reason", &W::reason, "as a sentence"),
                      field("steady", &W::steady, "false when the series never settles"));
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
    return field_list(field("count", &S::count, "steady steps"), field("median", &S::median, "s"),
                      field("mean", &S::mean, "s"), field("stddev", &S::stddev, "s"),
                      field("p5", &S::p5, "5th percentile, s"), field("p95", &S::p95, "95th percentile, s"),
                      field("cv", &S::cv, "stddev / mean"),
                      field("ci95_low", &S::ci95_low, "lower end of the 95 % interval of the mean, s"),
                      field("ci95_high", &S::ci95_high, "upper end, s"),
                      field("interval_method", &S::interval_method,
                            "how this interval and those of the derived figures were made: docs/method.md"),
                      field("outliers", &S::outliers, "steps labelled as outliers"));
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
    return field_list(field("id", &P::id, "which peak"),
                      field("flops_per_second", &P::flops_per_second, "dense peak of one device, FLOP/s"),
                      field("source", &P::source, "where the figure comes from"),
                      field("memory_bytes_per_second", &P::memory_bytes_per_second,
                            "main memory's bandwidth for one device (STREAM's triad), measured with the peak, B/s"),
                      field("memory_source", &P::memory_source, "how it was measured"));
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
    return field_list(field("flops_per_token", &D::flops_per_token, "model FLOPs of forward and backward, by formula"),
                      field("headline_formula", &D::headline_formula, "formula of mfu and tflops_per_gpu"),
                      field("peak", &D::peak, "denominator of MFU"),
                      field("tokens_per_second", &D::tokens_per_second, "tokens/s of the run"),
                      field("tokens_per_second_per_gpu", &D::tokens_per_second_per_gpu, "tokens/s per device"),
                      field("tflops_per_gpu", &D::tflops_per_gpu, "model TFLOP/s per device"),
                      field("mfu", &D::mfu, "model FLOP/s / (devices x dense peak), a fraction"),
                      field("mfu_by_formula", &D::mfu_by_formula, "the same for every formula"),
                      field("joules_per_token", &D::joules_per_token, "energy per token, J"),
                      field("usd_per_1e12_tokens", &D::usd_per_1e12_tokens, "cost of 1e12 tokens, USD"),
                      field("usd_per_hour", &D::usd_per_hour, "price of all devices of the run, USD per hour"));
  }
};

// The planner's prediction for the run, from its specification and the device alone (docs/planner.md).
struct Prediction {
  std::optional<double> memory_gb, step_time_seconds;
  std::string family;  // "megatron_core"
  std::optional<std::string> machine;
  std::string parameters;
  std::optional<bool> calibrated;
  std::optional<std::string> not_predicted;
  static constexpr auto fields() {
    using P = Prediction;
    return field_list(
        field("memory_gb", &P::memory_gb, "predicted memory of the device that needs most, GB"),
        field("step_time_seconds", &P::step_time_seconds, "predicted time of a steady step, s"),
        field("family", &P::family, "program whose traits and parameters the planner used"),
        field("machine", &P::machine, "machine whose facts and parameters it used; absent: no time is predicted"),
        field("parameters", &P::parameters, "its parameters: built-in, or the file they were read from"),
        field("calibrated", &P::calibrated, "true if measurements of that architecture support the predicted time"),
        field("not_predicted", &P::not_predicted, "figures that the planner does not predict"));
  }
};

}  // namespace tprimat
