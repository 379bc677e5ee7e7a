#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compare/audit.h"
#include "compare/outlier_causes.h"
#include "compare/plausibility.h"
#include "compare/series.h"
#include "result/summary.h"
#include "text/format.h"

namespace tprimat {
namespace {

using Figures = std::optional<Proof>;

constexpr std::string_view k_work_keys[] = {"tokens_per_step", "global_batch_size", "sequence_length", "precision",
                                            "steps",           "max_steps"};

bool decides_the_work(const AuditEntry& entry) {
  return std::find(std::begin(k_work_keys), std::end(k_work_keys), entry.key) != std::end(k_work_keys);
}

template <bool work>
Figures check_effective_settings(const Contender& c) {
  std::vector<std::string> differences;
  for (const LoadedRun& run : c.runs)
    for (const AuditEntry& entry : run.result.config_audit) {
      if (!entry.asked || decides_the_work(entry) != work) continue;
      std::string each = fmt::format("{} {} asked for, {} effective", entry.key, *entry.asked, entry.effective);
      if (std::find(differences.begin(), differences.end(), each) == differences.end())
        differences.push_back(std::move(each));
    }
  return differences.empty() ? Figures() : Figures(fmt::format("{}", fmt::join(differences, "; ")));
}

// What the file states against what follows from its own inputs.
template <Contradiction::Kind kind>
Figures check_contradictions(const Contender& c) {
  std::vector<Evidence> evidence;
  for (const LoadedRun& run : c.runs)
    for (const Contradiction& each : run.result.contradictions)
      if (each.kind == kind) evidence.push_back({each.what, each.stated, each.derived});
  if (evidence.empty()) return std::nullopt;
  Proof proof(std::move(evidence));
  proof.figures = "stated against derived: " + proof.figures;
  return proof;
}

// A reason may be a line of a log, which ends in dots of its own.
std::string without_dots(std::string text) {
  while (text.ends_with('.')) text.pop_back();
  return text;
}

Figures check_status(const Contender& c) {
  for (const LoadedRun& run : c.runs)
    if (run.result.status != RunStatus::complete)
      return fmt::format("{}{}{}", enum_name(run.result.status), run.result.status_reason ? ", " : "",
                         without_dots(run.result.status_reason.value_or("")));
  return std::nullopt;
}

Figures check_impossible(const Contender& c) {
  constexpr double k_most_tokens_per_second = 1e9;  // a model of a million parameters at 6e15 FLOP/s
  for (const LoadedRun& run : c.runs) {
    const Derived& derived = run.result.derived;
    if (derived.mfu && derived.mfu->value > 1) return fmt::format("MFU {}", format_percent(derived.mfu->value));
    if (derived.tokens_per_second && !(derived.tokens_per_second->value > 0))
      return fmt::format("{} tokens/s", derived.tokens_per_second->value);
    if (derived.tokens_per_second_per_gpu && derived.tokens_per_second_per_gpu->value > k_most_tokens_per_second)
      return fmt::format("{:.2g} tokens/s per device", derived.tokens_per_second_per_gpu->value);
  }
  return std::nullopt;
}

// The first of a participant's runs that shows something.
template <Evidences (*find)(const RunResult&)>
Figures check_runs(const Contender& c) {
  for (const LoadedRun& run : c.runs)
    if (Evidences evidence = find(run.result); !evidence.empty()) return Proof(std::move(evidence));
  return std::nullopt;
}

Figures check_unheard_of_mfu(const Contender& c) {
  for (const LoadedRun& run : c.runs)
    if (const auto mfu = find_unheard_of_mfu(run.result)) return fmt::format("MFU {}", format_percent(*mfu));
  return std::nullopt;
}

Figures check_rounding(const Contender& c) {
  for (const LoadedRun& run : c.runs)
    if (const auto share = find_rounding(run.result)) return fmt::format("up to ± {} each", format_percent(*share, 2));
  return std::nullopt;
}

Figures check_constant_times(const Contender& c) {
  for (const LoadedRun& run : c.runs)
    if (const auto seconds = find_constant_time(run.result))
      return format_duration(*seconds) + " at each of the steady steps";
  return std::nullopt;
}

Figures check_drift(const Contender& c) {
  for (const LoadedRun& run : c.runs)
    if (const auto drift = find_drift(run.result))
      return fmt::format("{} in the first third of the steady steps, {} in the last", format_duration(drift->early),
                         format_duration(drift->late));
  return std::nullopt;
}

Figures check_device_counts(const Contender& c) {
  for (const LoadedRun& run : c.runs) {
    const auto &of_training = run.result.training_config.num_gpus, &of_machine = run.result.gpu_info.device_count;
    if (of_training && of_machine && *of_training != *of_machine)
      return fmt::format("training_config.num_gpus is {}, gpu_info.device_count is {}", *of_training, *of_machine);
  }
  return std::nullopt;
}

Figures check_model_name(const Contender& c) { return c.first().model_info.name.empty() ? Figures("") : std::nullopt; }

Figures check_rate(const Contender& c) {
  const RunResult& run = c.first();
  if (run.derived.tokens_per_second_per_gpu) return std::nullopt;
  std::string missing;
  const auto name = [&](bool known, const char* what) {
    missing += known ? "" : (missing.empty() ? "" : ", ") + std::string(what);
  };
  const bool has_tokens = tokens_per_step(run).has_value();
  name(has_tokens || run.training_config.global_batch_size.value_or(0) > 0, "global batch size");
  name(has_tokens || run.training_config.sequence_length.value_or(0) > 0, "sequence length");
  name(device_count(run).has_value(), "device count");
  name(!steady_step_times(run).empty(), "times of steady steps");
  return missing.empty() ? Figures("") : "not known: " + missing;
}

Figures check_collapse(const Contender& c) {
  for (const LoadedRun& run : c.runs)
    if (const auto loss = find_loss_collapse(curve_by_step(run.result, run.result.loss_values)))
      return fmt::format("{} nats at the end", format_significant(*loss, 2));
  return std::nullopt;
}

Figures check_divergence(const Contender& c) {
  for (const LoadedRun& run : c.runs)
    if (const auto rise = find_loss_divergence(curve_by_step(run.result, run.result.loss_values)))
      return fmt::format("from {} nats at step {} to {} at the end", format_significant(rise->reference, 3), rise->step,
                         format_significant(rise->subject, 3));
  return std::nullopt;
}

Figures check_steady(const Contender& c) {
  for (const LoadedRun& run : c.runs)
    if (!run.result.warmup.steady) return run.result.warmup.reason;
  return std::nullopt;
}

Figures check_disturbance(const Contender& c) {
  for (const LoadedRun& run : c.runs)
    for (const TelemetrySummary& each : run.result.telemetry)
      if (each.others_busy_threads)
        return fmt::format("other processes kept {:.1f} hardware threads busy", *each.others_busy_threads);
  return std::nullopt;
}

// A clock that somebody set is no throttling.
Figures check_throttling(const Contender& c) {
  constexpr double k_worth_telling = 0.05;
  for (const LoadedRun& run : c.runs)
    for (const TelemetrySummary& each : run.result.telemetry)
      for (const auto& [reason, share] : each.throttle_shares.value_or(std::map<std::string, double>()))
        if (reason != "clock_set" && share > k_worth_telling)
          return fmt::format("{} of the readings, by {}", format_percent(share, 0), reason);
  return std::nullopt;
}

Figures check_repetitions(const Contender& c) {
  constexpr double k_worth_telling = 0.05;
  double low = 0, high = 0;
  for (const LoadedRun& run : c.runs) {
    const auto& rate = run.result.derived.tokens_per_second;
    if (!rate || !(rate->value > 0)) return std::nullopt;
    low = low == 0 ? rate->value : std::min(low, rate->value);
    high = std::max(high, rate->value);
  }
  if (high - low <= k_worth_telling * low) return std::nullopt;
  return fmt::format("{} to {} tokens/s", format_count(low), format_count(high));
}

template <bool many>
Figures check_outliers(const Contender& c) {
  constexpr double k_many_share = 0.05, k_many = 3;
  for (const LoadedRun& run : c.runs) {
    const auto& statistics = run.result.statistics;
    if (!statistics || statistics->outliers.empty()) continue;
    const auto count = static_cast<double>(statistics->outliers.size());
    const bool is_many = count >= k_many && count > k_many_share * static_cast<double>(statistics->count);
    if (is_many == many) return run.outliers ? *run.outliers : describe_outliers(run.result);
  }
  return std::nullopt;
}

Figures check_copies(const Contender& c) {
  return c.copies.empty() ? std::nullopt : Figures(fmt::format("{}", fmt::join(c.copies, ", ")));
}

std::string describe_measurements(const RunResult& run, int64_t count) {
  const char* plural = count == 1 ? "" : "s";
  const bool is_of_means = run.steps && run.steps->mean_of && !run.steps->mean_of->empty();
  if (!is_of_means) return fmt::format("{} steady step{}", count, plural);
  return fmt::format("{} steady record{}, each the mean of {} steps", count, plural, run.steps->mean_of->back());
}

Figures check_few_steps(const Contender& c) {
  constexpr int64_t k_enough = 20;
  for (const LoadedRun& run : c.runs)
    if (const auto& statistics = run.result.statistics; statistics && statistics->count < k_enough)
      return fmt::format("{}, {} are wanted", describe_measurements(run.result, statistics->count), k_enough);
  return std::nullopt;
}

Figures check_few_runs(const Contender& c) {
  constexpr size_t k_enough = 3;
  if (c.runs.size() >= k_enough) return std::nullopt;
  return fmt::format("{} run{}, {} are wanted", c.runs.size(), c.runs.size() == 1 ? "" : "s", k_enough);
}

Figures check_precision(const Contender& c) { return c.first().precision ? std::nullopt : Figures(""); }
Figures check_shape(const Contender& c) { return c.first().model_info.shape ? std::nullopt : Figures(""); }
Figures check_losses(const Contender& c) { return c.first().loss_values.empty() ? Figures("") : std::nullopt; }
Figures check_learning_rates(const Contender& c) {
  return c.first().learning_rates.empty() ? Figures("") : std::nullopt;
}
// A log of a trainer that is none of our frameworks names it by its format.
Figures check_framework(const Contender& c) {
  return c.first().framework || c.first().source.format ? std::nullopt : Figures("");
}
// The framework's own rate needs none, but what a token costs depends on it.
Figures check_length(const Contender& c) {
  const RunResult& run = c.first();
  return run.derived.tokens_per_second_per_gpu && !run.training_config.sequence_length ? Figures("") : std::nullopt;
}
Figures check_device(const Contender& c) { return c.first().gpu_info.device_name.empty() ? Figures("") : std::nullopt; }

constexpr const char* k_unknown_side = "what is not known cannot be shown to be equal";

using enum Severity;
constexpr std::array k_run_rules = {
    RunRule{"status", error, "the run is not a complete, valid one", "a rate of half a run is not a rate of the run",
            "run it again, or leave it out with a filter", check_status},
    RunRule{"impossible", error, "a figure is impossible", "no device does more than its peak: an input is wrong",
            "check the peak, the device count and the batch size in the file", check_impossible},
    RunRule{"effective_work", error, "other work was done than the file states",
            "the rate is work over time, and the work is in doubt",
            "correct the batch size or sequence length from the run's log", check_effective_settings<true>},
    RunRule{"rate_contradiction", error, "the file's speed does not follow from its own steps and batch",
            "a figure or an input was changed, and nothing says which of them is true",
            "extract the result again from its log, or run again", check_contradictions<Contradiction::Kind::rate>},
    RunRule{"device_counts", error, "the file names two numbers of devices, so its rate per device is in doubt",
            "the rate per device is the headline", "correct the number of devices from the run's log",
            check_device_counts},
    RunRule{"foreign_device", error, "platform, device and software stack are not of one vendor",
            "whose speed this is, is in doubt", "correct the platform or the device's name from the run's log",
            check_runs<find_foreign_device>},
    RunRule{"model_missing", error, "the model is not named", k_unknown_side, "add model_info.name to the file",
            check_model_name},
    RunRule{"rate_missing", error, "there is no rate to compare", k_unknown_side,
            "add the missing facts from the run's log", check_rate},
    RunRule{"figure_contradiction", warning, "a figure of the file does not follow from its own inputs",
            "peak, formula, shape or price was changed after the run; the figures shown are derived again",
            "check the shape, the peak and the price in the file", check_contradictions<Contradiction::Kind::figure>},
    RunRule{"layout_contradiction", warning, "layout, batch and devices do not multiply", "one of them is not what ran",
            "correct the layout from the run's log", check_contradictions<Contradiction::Kind::layout>},
    RunRule{"other_peak", warning, "the peak behind MFU is not the catalogue's for this device and precision",
            "MFU against another peak is another figure",
            "leave the peak to the catalogue, or measure it with tprimat probe", check_runs<find_other_peak>},
    RunRule{"unheard_of_mfu", warning, "the MFU is higher than any published training's",
            "an input that doubles it would not be noticed otherwise", "check batch, sequence length, devices and peak",
            check_unheard_of_mfu},
    RunRule{"impossible_memory", warning, "the memory is more than there is", "the figure is of something else",
            "check who measured it, and on which device", check_runs<find_impossible_memory>},
    RunRule{"impossible_loss", warning, "the loss is none that a training has",
            "what was recorded is no mean of cross-entropies", "record the mean loss of each step in nats per token",
            check_runs<find_impossible_loss>},
    RunRule{"loss_collapse", warning, "the loss collapses, which real text does not allow",
            "a model that memorised its data has been given an easier task",
            "check that the data is not one repeated sample", check_collapse},
    RunRule{"loss_divergence", warning, "the loss rises again", "a training that diverges is of no use at any speed",
            "lower the learning rate, or find the step where it begins", check_divergence},
    RunRule{"effective_settings", warning, "the framework used other settings than asked for",
            "the comparison was planned with what was asked", "make the framework's configuration agree",
            check_effective_settings<false>},
    RunRule{"never_steady", warning, "the step times never settle", "a mean over a drift depends on when one stops",
            "run longer; look for throttling, checkpoints or other users", check_steady},
    RunRule{"constant_times", warning, "the step times do not vary, so their noise is not known",
            "an average, or a rounding, stands in the place of each step",
            "record the time of each step as it was measured", check_constant_times},
    RunRule{"drift", warning, "the step times drift", "a mean over a drift depends on when one stops",
            "look for throttling, growing sequences, a leak or other users", check_drift},
    RunRule{"disturbed", warning, "the machine was not quiet, so the run was slower than it is alone",
            "the other processes were measured too", "stop what else runs there, and run again", check_disturbance},
    RunRule{"throttled", warning, "the device's clock was held down", "the cooling or the power limit was measured too",
            "mend cooling or power limit, or say that this is the machine as it stands", check_throttling},
    RunRule{"runs_disagree", warning, "the repetitions differ more than their steps explain",
            "something that changes from run to run is not under control",
            "find it (placement, clocks, neighbours), or repeat more often", check_repetitions},
    RunRule{"outliers", warning, "many steps are outliers", "they count: the mean holds them",
            "look for checkpoints, garbage collection or other users", check_outliers<true>},
    RunRule{"few_steps", warning, "few steps", "short series hide their own noise", "run at least 30 steps",
            check_few_steps},
    RunRule{"few_runs", warning, "few runs, which show little or nothing of the spread between runs",
            "the spread between runs is usually the larger one", "repeat with --runs 3 or more", check_few_runs},
    RunRule{"copies", warning, "the same measurement under several names counts once",
            "a copy knows nothing that the original does not", "give each run's own file, and remove the copies",
            check_copies},
    RunRule{"precision_missing", warning, "the precision is not known, so equal numerics cannot be shown",
            k_unknown_side, "name it in the file, or to tprimat extract with --precision", check_precision},
    RunRule{"shape_missing", warning, "the model's shape is not known, so there are no FLOPs and no MFU",
            k_unknown_side, "name a model of the catalogue to tprimat extract with --model", check_shape},
    RunRule{"sequence_length_missing", warning, "the sequence length is not known, so a token's work is not either",
            k_unknown_side, "name it to tprimat extract with --sequence-length", check_length},
    RunRule{"loss_missing", warning, "no loss was recorded, so equal training cannot be shown", k_unknown_side,
            "have the trainer log the loss of every step", check_losses},
    RunRule{"learning_rate_missing", note, "no learning rate was recorded", k_unknown_side,
            "have the trainer log the learning rate", check_learning_rates},
    RunRule{"framework_missing", note, "the framework is not known", k_unknown_side, "add \"framework\" to the file",
            check_framework},
    RunRule{"rounded", note, "the log rounds its step times",
            "a rounding that is alike at every step does not average out", "have the trainer print more digits",
            check_rounding},
    RunRule{"device_missing", note, "the device is not known", k_unknown_side,
            "name it to tprimat extract with --device", check_device},
    RunRule{"outlier", note, "some steps are outliers; they count", "a checkpoint is part of what training costs", "",
            check_outliers<false>},
};

}  // namespace

std::span<const RunRule> run_rules() { return k_run_rules; }

}  // namespace tprimat
