#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "result/kinds.h"
#include "spec/names.h"
#include "text/fields.h"

namespace tprimat {

// The records of a RunResult beside the figures: sensors, source, audit, events, series.

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
    return field_list(
        field("source", &T::source, "who measured"), field("samples", &T::samples, "number of samples"),
        field("interval_seconds", &T::interval_seconds, "time between samples, s"),
        field("mean_utilisation", &T::mean_utilisation, "share of the device's capacity, 0..1"),
        field("others_busy_threads", &T::others_busy_threads,
              "hardware threads that other processes kept busy on a machine without idle ones"),
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
        field("notes", &T::notes, "figures that the sensor did not measure, and why"));
  }
};

// The sensors' readings during each step: one value per entry of step_times, null if there was no reading.
struct StepTelemetry {
  std::optional<std::vector<double>> power_watts, lowest_clock_hz, highest_temperature_celsius, utilisation,
      others_busy_threads;
  std::optional<std::map<std::string, std::vector<double>>> throttle_shares;
  static constexpr auto fields() {
    using T = StepTelemetry;
    return field_list(
        field("power_watts", &T::power_watts, "mean power of all devices together, W"),
        field("lowest_clock_hz", &T::lowest_clock_hz, "mean clock of the device that had the lowest one, Hz"),
        field("highest_temperature_celsius", &T::highest_temperature_celsius, "of any device, degrees Celsius"),
        field("utilisation", &T::utilisation, "share of the devices' capacity, 0..1; on cpu of the run's threads"),
        field("others_busy_threads", &T::others_busy_threads,
              "hardware threads that other processes kept busy while the machine had no idle ones, else 0"),
        field("throttle_shares", &T::throttle_shares,
              "share of the readings in which a device's clock was held down, 0..1, by reason as in `telemetry`; only "
              "reasons that were seen"));
  }
};

// A fact that the log does not state.
struct AssumedFact {
  std::string key;    // in the result: "training_config.num_gpus"
  std::string value;  // "8"
  std::string from;   // "config.yaml", "LLAMA_LOG", "the log's path"
  std::optional<std::string> setting = {};
  static constexpr auto fields() {
    using A = AssumedFact;
    return field_list(field("key", &A::key, "fact, by its key in this file"), field("value", &A::value, "its value"),
                      field("from", &A::from, "configuration, variable or name that states it"),
                      field("setting", &A::setting, "key of the configuration"));
  }
};

struct SourceInfo {
  std::optional<std::string> log = {}, steps_file = {}, format = {};
  std::optional<double> confidence = {};
  std::optional<TimeSource> step_time = {};
  std::optional<int64_t> lines = {}, first_line = {}, last_line = {}, records = {}, attempts = {}, attempt = {};
  std::optional<std::vector<AssumedFact>> assumed = {};
  static constexpr auto fields() {
    using S = SourceInfo;
    return field_list(
        field("log", &S::log, "path of the log"), field("steps_file", &S::steps_file, "path of the step records"),
        field("format", &S::format, "format that was read"),
        field("confidence", &S::confidence, "confidence in that format, 0..1; absent: it was not detected"),
        field("step_time", &S::step_time, "printed, from_rate or from_timestamps: whether step times are derived"),
        field("lines", &S::lines, "lines of the log"),
        field("first_line", &S::first_line, "line of the first step record, from 1"),
        field("last_line", &S::last_line, "line of the last step record"),
        field("records", &S::records, "lines that report a step, copies by other ranks included"),
        field("attempts", &S::attempts, "attempts in the whole log, of all its runs"),
        field("attempt", &S::attempt, "attempt of the log that the steps and settings belong to, from 1"),
        field("assumed", &S::assumed,
              "facts that the log does not state: from a configuration, or from the log's name"));
  }
};

// A requested setting and the one that the framework reports. `asked` is absent where only the log is known.
struct AuditEntry {
  std::string key;
  std::optional<std::string> asked;
  std::string effective;
  std::optional<std::string> reason = {};
  static constexpr auto fields() {
    using A = AuditEntry;
    return field_list(field("key", &A::key, "setting"), field("asked", &A::asked, "requested value"),
                      field("effective", &A::effective, "value the framework reported"),
                      field("reason", &A::reason, "why the suite changed the request, where it did"));
  }
};

// A figure of a file that contradicts its own inputs.
struct Contradiction {
  // In doubt: the speed, the model, devices and batch, a figure, work that the framework printed otherwise.
  enum class Kind { rate, shape, layout, figure, settings };
  std::string what, stated, derived;
  Kind kind = Kind::figure;
};

// Something that the log reports beside its steps.
struct RunEvent {
  EventKind kind = EventKind::other;
  std::optional<int64_t> line, step, rank;
  std::optional<double> seconds, value;
  std::string text;
  static constexpr auto fields() {
    using E = RunEvent;
    return field_list(
        field("kind", &E::kind, "kind of the event"), field("line", &E::line, "line of the log, from 1"),
        field("step", &E::step,
              "the step it names, else the last one before it; of a NaN or a skipped update the next"),
        field("rank", &E::rank, "rank that reported it"), field("seconds", &E::seconds, "how long it took, s"),
        field("value", &E::value, "loss of an evaluation, nats; number of skipped updates where it is not 1"),
        field("text", &E::text, "as a sentence"));
  }
};

// A step that is left out of the steady state, because its time is not that of a training step alone.
struct LabelledStep {
  int64_t step = 0;
  StepLabel label = StepLabel::other;
  static constexpr auto fields() {
    using L = LabelledStep;
    return field_list(field("step", &L::step, "number of the step"), field("label", &L::label, "why it is left out"));
  }
};

struct RankMemoryEntry {
  std::optional<int64_t> rank;
  MemoryKind kind = MemoryKind::other;
  double gb = 0.0;
  static constexpr auto fields() {
    using M = RankMemoryEntry;
    return field_list(field("rank", &M::rank, "rank; absent: not in the log"),
                      field("kind", &M::kind, "kind of memory"), field("gb", &M::gb, "highest value, GB"));
  }
};

// Figures that the framework itself printed, one per entry of step_times; null where it did not. They follow its own
// formulas and its own peak, and nothing is derived from them unless source.step_time says so.
struct ReportedFigures {
  std::optional<std::vector<double>> tflops_per_gpu, mfu, tokens_per_second, tokens_per_second_per_gpu,
      samples_per_second, loss_scale, power_watts_per_gpu, energy_joules_per_gpu, unix_time;
  static constexpr auto fields() {
    using R = ReportedFigures;
    return field_list(
        field("tflops_per_gpu", &R::tflops_per_gpu, "1e12 FLOP/s per device, by the framework's formula"),
        field("mfu", &R::mfu, "fraction, by the framework's formula and peak"),
        field("tokens_per_second", &R::tokens_per_second, "of all devices"),
        field("tokens_per_second_per_gpu", &R::tokens_per_second_per_gpu, "of one device"),
        field("samples_per_second", &R::samples_per_second, "sequences/s of all devices"),
        field("loss_scale", &R::loss_scale, "loss scale of fp16 training"),
        field("power_watts_per_gpu", &R::power_watts_per_gpu, "W of one device"),
        field("energy_joules_per_gpu", &R::energy_joules_per_gpu, "J of one device and step"),
        field("unix_time", &R::unix_time, "time stamp of the record, s since 1970; the log's clock read as UTC"));
  }
};

// Describes the entries of step_times when these are not simply steps 1, 2, 3 ...
struct StepSeries {
  int64_t counts_from = 1;
  std::optional<std::vector<int64_t>> numbers, mean_of;
  std::optional<std::vector<double>> time_low, time_high;
  std::vector<LabelledStep> labelled;
  static constexpr auto fields() {
    using S = StepSeries;
    return field_list(field("counts_from", &S::counts_from, "number of a training's first step, 0 or 1"),
                      field("numbers", &S::numbers, "number of each step as the log counts it"),
                      field("mean_of", &S::mean_of, "steps that each entry is the mean of"),
                      field("time_low", &S::time_low, "lower bound of each step time, from the log's rounding, s"),
                      field("time_high", &S::time_high, "upper bound of each step time, s"),
                      field("labelled", &S::labelled, "steps left out of the steady state"));
  }
};

}  // namespace tprimat
