#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compare/audit.h"
#include "compare/outlier_causes.h"
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
  std::string text;
  for (const AuditEntry& entry : c.first().config_audit)
    if (entry.asked && decides_the_work(entry) == work)
      text += fmt::format("{}{} {} asked for, {} effective", text.empty() ? "" : "; ", entry.key, *entry.asked,
                          entry.effective);
  return text.empty() ? Figures() : Figures(text);
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

Figures check_status(const Contender& c) {
  for (const LoadedRun& run : c.runs)
    if (run.result.status != RunStatus::complete)
      return fmt::format("{}{}{}", enum_name(run.result.status), run.result.status_reason ? ", " : "",
                         run.result.status_reason.value_or(""));
  return std::nullopt;
}

Figures check_impossible(const Contender& c) {
  for (const LoadedRun& run : c.runs) {
    const Derived& derived = run.result.derived;
    if (derived.mfu && derived.mfu->value > 1) return fmt::format("MFU {}", format_percent(derived.mfu->value));
    if (derived.tokens_per_second && !(derived.tokens_per_second->value > 0))
      return fmt::format("{} tokens/s", derived.tokens_per_second->value);
  }
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
  name(tokens_per_step(run).has_value(), "global batch size and sequence length");
  name(device_count(run).has_value(), "device count");
  name(!steady_step_times(run).empty(), "times of steady steps");
  return missing.empty() ? Figures("") : "not known: " + missing;
}

Figures check_collapse(const Contender& c) {
  const auto loss = find_loss_collapse(c.first().loss_values);
  return loss ? Figures(fmt::format("{} nats at the end", format_significant(*loss, 2))) : std::nullopt;
}

Figures check_divergence(const Contender& c) {
  const auto rise = find_loss_divergence(c.first().loss_values);
  if (!rise) return std::nullopt;
  return fmt::format("from {} nats at step {} to {} at the end", format_significant(rise->reference, 3), rise->step,
                     format_significant(rise->subject, 3));
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
    if (is_many == many) return describe_outliers(run.result);
  }
  return std::nullopt;
}

Figures check_copies(const Contender& c) {
  return c.copies.empty() ? std::nullopt : Figures(fmt::format("{}", fmt::join(c.copies, ", ")));
}

Figures check_few_steps(const Contender& c) {
  constexpr int64_t k_enough = 20;
  const auto& statistics = c.first().statistics;
  if (!statistics || statistics->count >= k_enough) return std::nullopt;
  return fmt::format("{} steady steps, {} are wanted", statistics->count, k_enough);
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
Figures check_framework(const Contender& c) { return c.first().framework ? std::nullopt : Figures(""); }

constexpr const char* k_extract_again = "extract the run again from its log, which records it";
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
    RunRule{"model_missing", error, "the model is not named", k_unknown_side, "add model_info.name to the file",
            check_model_name},
    RunRule{"rate_missing", error, "there is no rate to compare", k_unknown_side,
            "add the missing facts from the run's log", check_rate},
    RunRule{"figure_contradiction", warning, "a figure of the file does not follow from its own inputs",
            "peak, formula, shape or price was changed after the run; the figures shown are derived again",
            "check the shape, the peak and the price in the file", check_contradictions<Contradiction::Kind::figure>},
    RunRule{"layout_contradiction", warning, "layout, batch and devices do not multiply", "one of them is not what ran",
            "correct the layout from the run's log", check_contradictions<Contradiction::Kind::layout>},
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
            k_unknown_side, k_extract_again, check_precision},
    RunRule{"shape_missing", warning, "the model's shape is not known, so there are no FLOPs and no MFU",
            k_unknown_side, k_extract_again, check_shape},
    RunRule{"loss_missing", warning, "no loss was recorded, so equal training cannot be shown", k_unknown_side,
            k_extract_again, check_losses},
    RunRule{"learning_rate_missing", note, "no learning rate was recorded", k_unknown_side, k_extract_again,
            check_learning_rates},
    RunRule{"framework_missing", note, "the framework is not known", k_unknown_side, "add \"framework\" to the file",
            check_framework},
    RunRule{"outlier", note, "some steps are outliers; they count", "a checkpoint is part of what training costs", "",
            check_outliers<false>},
};

}  // namespace

std::span<const RunRule> run_rules() { return k_run_rules; }

}  // namespace tprimat
