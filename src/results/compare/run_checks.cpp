#include "compare/run_checks.h"

#include <fmt/format.h>

#include <cmath>

#include "compare/contender.h"
#include "compare/plausibility.h"
#include "compare/series.h"
#include "result/peak.h"
#include "result/printed_settings.h"
#include "result/summary.h"
#include "result/validity.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

// A reason may be a line of a log, which may end in dots.
std::string without_dots(std::string text) {
  while (text.ends_with('.')) text.pop_back();
  return text;
}

std::string describe_measurements(const RunResult& run, int64_t count) {
  const char* plural = count == 1 ? "" : "s";
  const int64_t span = usual_span(run);
  if (span == 1) return fmt::format("{} steady step{}", count, plural);
  return fmt::format("{} steady record{}, each the mean of {} steps", count, plural, span);
}

// Uses the catalogue's peak for the named device, not the file's.
std::optional<double> mfu_of_catalogue(const RunResult& run) {
  const auto& flops = run.derived.tflops_per_gpu;
  const auto peak = run.precision ? catalogue_peak(run.gpu_info.device_name, *run.precision) : std::nullopt;
  if (!flops || !peak || !(peak->flops_per_second > 0)) return std::nullopt;
  return flops->value * 1e12 / peak->flops_per_second;
}

// Speed, MFU or numerics follow from these.
bool is_decisive(const AssumedFact& fact) {
  return fact.key != "platform" && fact.key != "framework" && fact.key != "derived.usd_per_hour";
}

Figures list_assumed(const RunResult& run, bool decisive) {
  std::vector<std::string> facts;
  for (const AssumedFact& fact : run.source.assumed.value_or(std::vector<AssumedFact>()))
    if (is_decisive(fact) == decisive) facts.push_back(fmt::format("{} {} from {}", fact.key, fact.value, fact.from));
  if (facts.empty()) return std::nullopt;
  return join(facts, ", ");
}

}  // namespace

Figures check_assumed(const LoadedRun& run) { return list_assumed(run.result, true); }
Figures check_assumed_details(const LoadedRun& run) { return list_assumed(run.result, false); }

Figures check_status(const LoadedRun& run) {
  if (run.result.status != RunStatus::complete)
    return fmt::format("{}{}{}", enum_name(run.result.status), run.result.status_reason ? ", " : "",
                       without_dots(run.result.status_reason.value_or("")));
  return std::nullopt;
}

Figures check_impossible(const LoadedRun& run) {
  constexpr double k_max_tokens_per_second = 1e9;  // a model of a million parameters at 6e15 FLOP/s
  const Derived& derived = run.result.derived;
  if (derived.mfu && derived.mfu->value > 1) return fmt::format("MFU {}", format_percent(derived.mfu->value));
  if (const auto mfu = mfu_of_catalogue(run.result); mfu && *mfu > 1)
    return fmt::format("{} TFLOP/s per device, {} of the peak of {}",
                       format_significant(derived.tflops_per_gpu->value, 4), format_percent(*mfu, 0),
                       run.result.gpu_info.device_name);
  if (derived.tokens_per_second && !(derived.tokens_per_second->value > 0))
    return fmt::format("{} tokens/s", derived.tokens_per_second->value);
  if (derived.tokens_per_second_per_gpu && derived.tokens_per_second_per_gpu->value > k_max_tokens_per_second)
    return fmt::format("{:.2g} tokens/s per device", derived.tokens_per_second_per_gpu->value);
  return std::nullopt;
}

Figures check_idle_optimizer(const LoadedRun& run) {
  const auto idle = find_idle_optimizer(run.result);
  return idle ? Figures(*idle) : std::nullopt;
}

Figures check_adapters(const LoadedRun& run) {
  const auto setting = find_adapters(run.result);
  return setting && !run.result.model_info.trainable_parameters ? Figures(*setting) : std::nullopt;
}

Figures check_unheard_of_mfu(const LoadedRun& run) {
  if (const auto mfu = find_unheard_of_mfu(run.result)) return fmt::format("MFU {}", format_percent(*mfu));
  return std::nullopt;
}

Figures check_rounding(const LoadedRun& run) {
  if (const auto share = find_rounding(run.result)) return fmt::format("up to ± {} each", format_percent(*share, 2));
  return std::nullopt;
}

Figures check_constant_times(const LoadedRun& run) {
  if (const auto seconds = find_constant_time(run.result))
    return format_duration(*seconds) + " at each of the steady steps";
  return std::nullopt;
}

Figures check_drift(const LoadedRun& run) {
  if (const auto drift = find_drift(run.result))
    return fmt::format("{} in the first third of the steady steps, {} in the last", format_duration(drift->early),
                       format_duration(drift->late));
  return std::nullopt;
}

Figures check_device_counts(const LoadedRun& run) {
  const auto &of_training = run.result.training_config.num_gpus, &of_machine = run.result.gpu_info.device_count;
  if (of_training && of_machine && *of_training != *of_machine)
    return fmt::format("training_config.num_gpus is {}, gpu_info.device_count is {}", *of_training, *of_machine);
  return std::nullopt;
}

Figures check_collapse(const LoadedRun& run) {
  if (const auto loss = find_loss_collapse(curve_by_step(run.result, run.result.loss_values)))
    return fmt::format("{} nats at the end", format_significant(*loss, 2));
  return std::nullopt;
}

Figures check_guessing(const LoadedRun& run) {
  const int64_t vocabulary = run.result.model_info.shape ? run.result.model_info.shape->vocab_size : 0;
  if (const auto loss = find_loss_of_guessing(curve_by_step(run.result, run.result.loss_values), vocabulary))
    return fmt::format("{} nats at the end, guessing gives {}", format_significant(*loss, 4),
                       format_significant(std::log(static_cast<double>(vocabulary)), 4));
  return std::nullopt;
}

Figures check_divergence(const LoadedRun& run) {
  if (const auto rise = find_loss_divergence(curve_by_step(run.result, run.result.loss_values)))
    return fmt::format("from {} nats at step {} to {} at the end", format_significant(rise->reference, 3), rise->step,
                       format_significant(rise->subject, 3));
  return std::nullopt;
}

Figures check_steady(const LoadedRun& run) {
  if (!run.result.warmup.steady) return run.result.warmup.reason;
  return std::nullopt;
}

Figures check_disturbance(const LoadedRun& run) {
  for (const TelemetrySummary& each : run.result.telemetry)
    if (each.others_busy_threads)
      return fmt::format("other processes kept {:.1f} hardware threads busy", *each.others_busy_threads);
  return std::nullopt;
}

// A clock that the user set is not throttling.
Figures check_throttling(const LoadedRun& run) {
  constexpr double k_worth_telling = 0.05;
  for (const TelemetrySummary& each : run.result.telemetry)
    for (const auto& [reason, share] : each.throttle_shares.value_or(std::map<std::string, double>()))
      if (reason != "clock_set" && share > k_worth_telling)
        return fmt::format("{} of the readings, by {}", format_percent(share, 0), reason);
  return std::nullopt;
}

Figures check_repetitions(const Contender& c) {
  const auto range = find_disagreement(c);
  return range ? Figures(range->text()) : std::nullopt;
}

Figures check_copies(const Contender& c) { return c.copies.empty() ? std::nullopt : Figures(join(c.copies, ", ")); }

Figures check_few_steps(const LoadedRun& run) {
  constexpr int64_t k_enough = 20;
  const auto& statistics = run.result.statistics;
  if (!statistics || statistics->count >= k_enough) return std::nullopt;
  return fmt::format("{}, at least {} recommended", describe_measurements(run.result, statistics->count), k_enough);
}

Figures check_few_runs(const Contender& c) {
  constexpr size_t k_enough = 3;
  if (c.runs.size() >= k_enough) return std::nullopt;
  return fmt::format("{} run{}, at least {} recommended", c.runs.size(), c.runs.size() == 1 ? "" : "s", k_enough);
}

Figures check_clock(const LoadedRun& run) {
  if (const auto gap = run.clock_gap ? run.clock_gap : describe_clock_gap(run.result)) return Figures(*gap);
  return std::nullopt;
}

Figures check_reported(const LoadedRun& run) {
  if (const auto gap = run.reported_gap ? run.reported_gap : describe_reported_gap(run.result)) return Figures(*gap);
  return std::nullopt;
}

}  // namespace tprimat::results
