#include "report/html/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "result/metrics.h"
#include "result/summary.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

std::string digits(double value) { return format_significant(value, 6); }

std::string flops(double value) { return fmt::format("{:.5g}", value); }

std::string sum_of_steps(const RunResult& run) {
  const StepStatistics& s = *run.statistics;
  return fmt::format("{} s of {} steady steps", digits(s.mean * static_cast<double>(s.count)), s.count);
}

std::string derive_rate(const RunResult& run) {
  const auto tokens = tokens_per_step(run);
  if (!tokens || !run.statistics) return "the rate reported by the framework";
  const double rate = static_cast<double>(*tokens) / run.statistics->mean;
  if (std::fabs(run.derived.tokens_per_second->value / rate - 1) > 1e-3)
    return "the rate stated in the file, which contradicts its batch and step times";
  return fmt::format("{} tokens per step x {} steady steps / {} s", *tokens, run.statistics->count,
                     digits(run.statistics->mean * static_cast<double>(run.statistics->count)));
}

std::string derive_rate_per_device(const RunResult& run) {
  const auto devices = device_count(run);
  if (!devices || !run.derived.tokens_per_second) return "the rate reported by the framework";
  return fmt::format("{} tokens/s / {} device{}", digits(run.derived.tokens_per_second->value), *devices,
                     *devices == 1 ? "" : "s");
}

std::string derive_work(const RunResult& run) {
  const Derived& d = run.derived;
  const auto per_token = d.flops_per_token.find(d.headline_formula);
  if (per_token == d.flops_per_token.end() || !d.tokens_per_second_per_gpu) return "as stated in the file";
  return fmt::format("{} tokens/s per device x {} FLOPs per token (formula {})",
                     digits(d.tokens_per_second_per_gpu->value), flops(per_token->second), d.headline_formula);
}

std::string derive_mfu(const RunResult& run) {
  if (!run.derived.peak) return "as stated in the file";
  return fmt::format("{} / {} FLOP/s ({})", derive_work(run), flops(run.derived.peak->flops_per_second),
                     run.derived.peak->id);
}

std::string derive_memory(const RunResult& run) {
  return run.memory_metrics.measurement_method ? "measured by " + *run.memory_metrics.measurement_method
                                               : "the measurement method is not recorded";
}

std::string derive_memory_share(const RunResult& run, const std::optional<double>& gb) {
  return fmt::format("{} GB / {} GB", digits(*gb), digits(*run.gpu_info.total_memory_gb));
}

template <int trillions>
std::string derive_days(const RunResult& run) {
  return fmt::format("{}e12 / {} tokens/s / 86400", trillions, digits(run.derived.tokens_per_second->value));
}

std::string derive_power(const RunResult& run) {
  for (const TelemetrySummary& each : run.telemetry)
    if (each.mean_power_watts) return fmt::format("mean of the samples of {} ({} taken)", each.source, each.samples);
  return "as stated in the file";
}

std::string derive_energy(const RunResult& run) {
  const TelemetrySummary* const sensor = find_energy(run);
  if (sensor == nullptr) return "as stated in the file";
  return fmt::format("{} J ({}) / {} tokens", digits(*sensor->energy_joules), sensor->source,
                     digits(*sensor->energy_joules / run.derived.joules_per_token->value));
}

std::string derive_cost(const RunResult& run) {
  if (!run.derived.usd_per_hour || !run.derived.tokens_per_second) return "as stated in the file";
  return fmt::format("{} USD per hour / 3600 / {} tokens/s x 1e12", digits(*run.derived.usd_per_hour),
                     digits(run.derived.tokens_per_second->value));
}

std::string mean_of_steps(const RunResult& run, const std::optional<std::vector<double>>& values) {
  if (!values) return "as stated in the file";
  return fmt::format("mean of {} steps after {} of warm-up",
                     std::max<int64_t>(0, std::ssize(*values) - run.warmup.steps_excluded), run.warmup.steps_excluded);
}

struct Derivation {
  std::string_view metric;
  std::string (*substitute)(const RunResult& run);
};
constexpr Derivation k_derivations[] = {
    {"tokens_per_second_per_gpu", derive_rate_per_device},
    {"tokens_per_second", derive_rate},
    {"tflops_per_gpu", [](const RunResult& run) { return derive_work(run) + " / 1e12"; }},
    {"mfu", derive_mfu},
    {"mean_step_time",
     [](const RunResult& run) {
       return run.statistics ? fmt::format("{} / {}", sum_of_steps(run), run.statistics->count)
                             : "the average stated in the file";
     }},
    {"median_step_time", [](const RunResult& run) { return "median of " + sum_of_steps(run); }},
    {"p95_step_time", [](const RunResult& run) { return "95th percentile of " + sum_of_steps(run); }},
    {"step_time_cv",
     [](const RunResult& run) {
       return fmt::format("{} s / {} s", digits(run.statistics->stddev), digits(run.statistics->mean));
     }},
    {"first_step_time", [](const RunResult& run) { return fmt::format("time of step {}", step_number(run, 0)); }},
    {"total_time",
     [](const RunResult& run) {
       return run.step_times.empty() ? "the total stated in the file"
                                     : fmt::format("sum of {} step times, {} of them warm-up", run.step_times.size(),
                                                   run.warmup.steps_excluded);
     }},
    {"time_to_train", [](const RunResult&) { return std::string("run_stop - run_start, as the log states them"); }},
    {"peak_memory_allocated_gb", derive_memory},
    {"peak_memory_reserved_gb", derive_memory},
    {"peak_device_used_gb", derive_memory},
    {"mean_power", derive_power},
    {"joules_per_token", derive_energy},
    {"usd_per_1e12_tokens", derive_cost},
    {"days_per_1e12_tokens", derive_days<1>},
    {"days_per_15e12_tokens", derive_days<15>},
    {"memory_allocated_share",
     [](const RunResult& run) { return derive_memory_share(run, run.memory_metrics.peak_memory_allocated_gb); }},
    {"memory_reserved_share",
     [](const RunResult& run) { return derive_memory_share(run, run.memory_metrics.peak_memory_reserved_gb); }},
    {"device_used_share",
     [](const RunResult& run) { return derive_memory_share(run, run.memory_metrics.peak_device_used_gb); }},
    {"tokens_per_wh",
     [](const RunResult& run) {
       return fmt::format("3600 J per Wh / {} J per token", digits(run.derived.joules_per_token->value));
     }},
    {"tokens_per_usd_hour",
     [](const RunResult& run) {
       if (!run.derived.usd_per_hour || !run.derived.tokens_per_second) return std::string("as stated in the file");
       return fmt::format("{} tokens/s x 3600 / {} USD per hour", digits(run.derived.tokens_per_second->value),
                          digits(*run.derived.usd_per_hour));
     }},
    {"final_loss",
     [](const RunResult& run) {
       return fmt::format("mean of the last {} of {} losses", final_loss_window(run), run.loss_values.size());
     }},
    {"expert_load", [](const RunResult& run) { return mean_of_steps(run, run.experts->load_values); }},
    {"dropped_share", [](const RunResult& run) { return mean_of_steps(run, run.experts->dropped_values); }},
    {"aux_loss", [](const RunResult& run) { return mean_of_steps(run, run.experts->aux_loss_values); }},
    {"step_time_prediction_error",
     [](const RunResult& run) {
       return fmt::format("{} s predicted / {} s - 1", digits(*run.prediction->step_time_seconds),
                          digits(*comparable_step_seconds(run)));
     }},
    {"memory_prediction_error",
     [](const RunResult& run) {
       return fmt::format("{} GB predicted / {} GB - 1", digits(*run.prediction->memory_gb),
                          digits(*comparable_memory_gb(run)));
     }},
};

}  // namespace

std::optional<std::string> derive_figure(const Contender& contender, const Metric& metric) {
  const auto derivation =
      std::ranges::find_if(k_derivations, [&](const Derivation& each) { return each.metric == metric.key; });
  const auto run = std::ranges::find_if(contender.runs, [&](const LoadedRun& each) {
    const auto figure = metric.read(each.result);
    return figure && std::isfinite(figure->value);
  });
  if (derivation == std::end(k_derivations) || run == contender.runs.end()) return std::nullopt;
  const std::string text = derivation->substitute(run->result);
  if (contender.runs.size() == 1) return text;
  return fmt::format("{}, of the first of {} runs, = {}; the figure is the mean over the runs", text,
                     contender.runs.size(), digits(metric.read(run->result)->value));
}

}  // namespace tprimat::results
