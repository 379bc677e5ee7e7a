#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "compare/audit.h"
#include "compare/contender.h"
#include "compare/differences.h"
#include "compare/expert_rules.h"
#include "compare/load_runs.h"
#include "compare/plausibility.h"
#include "compare/run_checks.h"
#include "compare/time_to_train.h"
#include "result/gpu_cores.h"
#include "result/summary.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

constexpr std::string_view k_work_keys[] = {"tokens_per_step", "global_batch_size", "sequence_length", "precision",
                                            "steps",           "max_steps"};

bool decides_the_work(const AuditEntry& entry) {
  return std::ranges::find(k_work_keys, entry.key) != std::end(k_work_keys);
}

template <bool work>
Figures check_effective_settings(const Contender& c) {
  std::vector<std::string> differences;
  for (const LoadedRun& run : c.runs)
    for (const AuditEntry& entry : run.result.config_audit) {
      if (!entry.asked || entry.reason || decides_the_work(entry) != work) continue;
      std::string each = fmt::format("{} {} requested, {} effective", entry.key, *entry.asked, entry.effective);
      if (std::ranges::find(differences, each) == differences.end()) differences.push_back(std::move(each));
    }
  return differences.empty() ? Figures() : Figures(join(differences, "; "));
}

// What the suite itself changed, since the framework does not support what was asked for, or it does not fit.
Figures check_adapted(const Contender& c) {
  std::vector<std::string> differences;
  for (const LoadedRun& run : c.runs)
    for (const AuditEntry& entry : run.result.config_audit) {
      if (!entry.asked || !entry.reason) continue;
      std::string each =
          fmt::format("{} {} requested, {} used: {}", entry.key, *entry.asked, entry.effective, *entry.reason);
      if (std::ranges::find(differences, each) == differences.end()) differences.push_back(std::move(each));
    }
  return differences.empty() ? Figures() : Figures(join(differences, "; "));
}

// The file's figures against those that follow from its own inputs.
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

template <Evidences (*find)(const RunResult&)>
Figures check(const LoadedRun& run) {
  return show(find(run.result));
}

// A skipped update saves up to a tenth of a step's time, and its tokens train nothing. fp16 skips some updates until
// its loss scale fits; after the warm-up, more than one in twenty is an error.
template <bool many>
Figures check_skipped_updates(const LoadedRun& run) {
  constexpr double k_many_share = 0.05;
  const SkippedUpdates skipped = skipped_updates(run);
  const bool is_many =
      static_cast<double>(skipped.after_warmup) > k_many_share * static_cast<double>(skipped.steps_after_warmup);
  if (skipped.all > 0 && is_many == many)
    return fmt::format("{} of {} steps{}, {} of them after the warm-up", skipped.all, skipped.steps,
                       skipped.nan > 0 ? fmt::format(" ({} with a NaN)", skipped.nan) : "", skipped.after_warmup);
  return std::nullopt;
}

bool has_model(const RunResult& run) { return !run.model_info.name.empty(); }
bool has_rate(const RunResult& run) { return run.derived.tokens_per_second_per_gpu.has_value(); }
// A training to a target quality has a time instead, if its log has no steps.
bool has_rate_or_time(const RunResult& run) { return has_rate(run) || stands_for_rate(run); }
bool has_precision(const RunResult& run) { return run.precision.has_value(); }
bool has_shape(const RunResult& run) { return run.model_info.shape.has_value(); }
// The framework's own rate does not need it, but the work per token depends on it.
bool has_length(const RunResult& run) { return !has_rate(run) || run.training_config.sequence_length; }
bool has_losses(const RunResult& run) { return !run.loss_values.empty(); }
bool has_learning_rates(const RunResult& run) { return !run.learning_rates.empty(); }
// For a log of an unsupported trainer the format names it.
bool has_framework(const RunResult& run) { return run.framework || run.source.format; }
bool has_platform(const RunResult& run) { return run.platform.has_value(); }
bool has_device(const RunResult& run) { return !run.gpu_info.device_name.empty(); }

// Which inputs of the rate are absent.
std::string list_missing_inputs(const RunResult& run) {
  const bool has_tokens = tokens_per_step(run).has_value();
  std::vector<std::string> missing;
  if (!has_tokens && run.training_config.global_batch_size.value_or(0) <= 0) missing.emplace_back("global batch size");
  if (!has_tokens && run.training_config.sequence_length.value_or(0) <= 0) missing.emplace_back("sequence length");
  if (!device_count(run)) missing.emplace_back("device count");
  if (steady_step_times(run).empty()) missing.emplace_back("steady step times");
  return missing.empty() ? "" : "not known: " + join(missing, ", ");
}

// The first run that lacks a fact; its file is named if other runs have the fact.
template <bool (*has)(const RunResult&)>
Figures check_known(const Contender& c) {
  const auto lacks = [](const LoadedRun& run) { return !has(run.result); };
  const auto run = std::ranges::find_if(c.runs, lacks);
  if (run == c.runs.end()) return std::nullopt;
  std::string text = has == has_rate_or_time ? list_missing_inputs(run->result) : "";
  if (!std::ranges::all_of(c.runs, lacks)) text += fmt::format("{}in {}", text.empty() ? "" : ", ", file_name(*run));
  return text;
}

template <bool many>
Figures check_outliers(const LoadedRun& run) {
  constexpr double k_many_share = 0.05, k_many = 3;
  const auto& statistics = run.result.statistics;
  if (!statistics || statistics->outliers.empty()) return std::nullopt;
  const auto count = static_cast<double>(statistics->outliers.size());
  const bool is_many = count >= k_many && count > k_many_share * static_cast<double>(statistics->count);
  if (is_many == many) return run.outliers ? *run.outliers : describe_outliers(run.result);
  return std::nullopt;
}

// The steps that labels exclude from the rate.
template <bool many>
Figures check_labelled(const LoadedRun& run) {
  constexpr double k_worth_telling = 1.0 / 6, k_many = 0.25, k_slower = 0.02;
  constexpr size_t k_enough = 10;
  const LabelledTime time = time_labelled_steps(run.result);
  const double share = time.share();
  if (time.all < k_enough || share <= k_worth_telling || (share > k_many) != many) return std::nullopt;
  if (!(std::fabs(time.with_them - time.without) > k_slower * time.without)) return std::nullopt;
  return fmt::format("{} of {} steady steps; with them a step takes {}, without {}", time.labelled, time.all,
                     format_duration(time.with_them), format_duration(time.without));
  return std::nullopt;
}

Figures check_gpu_cores(const LoadedRun& run) {
  const auto cores = find_gpu_cores(run.result);
  return cores ? cores->contradiction : std::nullopt;
}

constexpr const char* k_unknown_side = "an unknown value cannot be shown to be equal";

using enum Severity;
constexpr std::array k_run_rules = {
    RunRule{"status", error, "the run is incomplete or invalid", "a partial run does not show the rate of the full run",
            "run it again, or remove the file from the paths", check_status},
    RunRule{"impossible", error, "a figure is impossible", "no device exceeds its peak: an input is wrong",
            "check the peak, the device count and the batch size in the file", check_impossible},
    RunRule{"effective_work", error, "the run did different work than the file states",
            "the rate is work over time, and the work is in doubt",
            "correct the batch size or sequence length from the run's log", check_effective_settings<true>},
    RunRule{"rate_contradiction", error, "the file's rate contradicts its own steps and batch",
            "a figure or an input was changed; the file does not show which one is right",
            "extract the result again from its log, or run again", check_contradictions<Contradiction::Kind::rate>},
    RunRule{"layout_contradiction", error, "layout, batch and device count contradict each other",
            "one of them is wrong, and the rate depends on it", "correct the layout or batch from the run's log",
            check_contradictions<Contradiction::Kind::layout>},
    RunRule{"shape_contradiction", error, "the model's shape contradicts the file's own FLOPs or parameter count",
            "the file does not show which model was trained", "correct the shape from the run's log or configuration",
            check_contradictions<Contradiction::Kind::shape>},
    RunRule{"impossible_time", error, "the steps take longer than any device needs: their times may be in another unit",
            "milliseconds read as seconds make every step a thousand times too long",
            "check the unit of step_times against the run's log", check<find_impossible_time>},
    RunRule{"clock_contradiction", error, "the step times contradict the time stamps of the log",
            "the rate is work over time, and the time is in doubt", "extract the result again from its log",
            check_clock},
    RunRule{"reported_contradiction", error, "the framework's own figures contradict the rate",
            "model, batch, sequence length, device count or time differs from the actual run",
            "extract the result again from its log, with the facts of that run", check_reported},
    RunRule{"settings_contradiction", error, "the settings that the framework printed contradict the file",
            "the rate is work over time, and the work is in doubt",
            "extract the result again from its log, with the facts of that run",
            check_contradictions<Contradiction::Kind::settings>},
    RunRule{"many_labelled", error, "labels exclude more than a quarter of the steps from the rate",
            "a rate without a quarter of the steps does not represent the training",
            "remove wrong labels; evaluate and save less often, or run past the batch ramp-up", check_labelled<true>},
    RunRule{"device_counts", error, "the file states two device counts, so its rate per device is in doubt",
            "verdicts use the rate per device", "correct the number of devices from the run's log",
            check_device_counts},
    RunRule{"foreign_device", error, "platform, device and software stack belong to different vendors",
            "the file does not show which vendor's device was measured",
            "correct the platform or the device's name from the run's log", check<find_foreign_device>},
    RunRule{"skipped_updates", error, "many updates were skipped, so the model learned nothing from those steps",
            "a skipped step changes no weight and does less work", "find the overflows or NaNs, and run again",
            check_skipped_updates<true>},
    RunRule{"idle_optimizer", error, "the optimizer updated no weights", "a run that trains nothing has no speed",
            "set a learning rate above zero, and run again", check_idle_optimizer},
    RunRule{"model_missing", error, "the model is not named", k_unknown_side,
            "name it: tprimat extract --model NAME (the catalogue's or any name of your own), or model_info.name in a "
            "file of your own",
            check_known<has_model>},
    RunRule{"rate_missing", error, "there is no rate to compare", k_unknown_side,
            "pass the missing facts to tprimat extract (--global-batch-size, --sequence-length, --devices)",
            check_known<has_rate_or_time>},
    RunRule{"figure_contradiction", warning, "a figure in the file contradicts its own inputs",
            "peak, formula, shape or price was changed after the run; the figures shown are recomputed",
            "check the shape, the peak and the price in the file", check_contradictions<Contradiction::Kind::figure>},
    RunRule{"other_peak", warning, "MFU uses a peak other than the catalogue's for this device and precision",
            "MFU against a different peak is a different metric",
            "leave the peak to the catalogue, or measure it with tprimat probe", check<find_other_peak>},
    RunRule{"unheard_of_mfu", warning, "the MFU is higher than any published training's",
            "a wrong input that doubles the MFU would otherwise go unnoticed",
            "check batch, sequence length, devices and peak", check_unheard_of_mfu},
    RunRule{"impossible_memory", warning,
            "the memory exceeds the available capacity, or is below the size of the weights",
            "the figure measures something else", "check which tool measured it, and on which device",
            check<find_impossible_memory>},
    RunRule{"impossible_loss", warning, "the loss is impossible for a training run",
            "the recorded values are not a mean cross-entropy", "record the mean loss of each step in nats per token",
            check<find_impossible_loss>},
    RunRule{"impossible_power", warning, "the power is outside the range that these devices draw under load",
            "joules per token depend on it", "check which sensor was read, and that it was read during training",
            check<find_impossible_power>},
    RunRule{"impossible_clock", warning, "a clock or a utilisation is impossible for a device",
            "it is in another unit, or measures something else",
            "correct mean_clock_hz (Hz) and mean_utilisation (0 to 1)", check<find_impossible_clock>},
    RunRule{"labelled_steps", warning, "labels exclude many steps from the rate",
            "this rate excludes the time of evaluations and checkpoints",
            "run with fewer evaluations and checkpoints, or more steps", check_labelled<false>},
    RunRule{"impossible_price", warning, "the price is outside the range of device rental prices",
            "the cost per token depends on it", "correct cost.usd_per_hour", check<find_impossible_price>},
    RunRule{"loss_collapse", warning, "the loss collapses to a level impossible on real text",
            "memorising the data is an easier task", "check that the data is not one repeated sample", check_collapse},
    RunRule{"nothing_learned", warning, "after all steps, the model is no better than guessing",
            "an optimizer that updates no weights leaves the loss there, as do random tokens",
            "check that the optimizer steps; train on real text to compare losses", check_guessing},
    RunRule{"loss_divergence", warning, "the loss rises again", "a diverging run is useless at any speed",
            "lower the learning rate, or find the step where it begins", check_divergence},
    RunRule{"effective_settings", warning, "the framework used different settings than requested",
            "the comparison assumes the requested settings", "make the framework's configuration agree",
            check_effective_settings<false>},
    RunRule{"adapted_settings", warning, "the suite took other settings than requested for this framework",
            "the sides may not train in the same way",
            "request settings that every framework supports, or run with --adapt strict", check_adapted},
    RunRule{"never_steady", warning, "the step times never settle",
            "the mean of drifting steps depends on the length of the run",
            "run longer; look for throttling, checkpoints or other users", check_steady},
    RunRule{"constant_times", warning, "the step times do not vary, so their noise is unknown",
            "each step holds an average or a rounded value", "record the measured time of each step",
            check_constant_times},
    RunRule{"drift", warning, "the step times drift", "the mean of drifting steps depends on the length of the run",
            "look for throttling, growing sequences, a leak or other users", check_drift},
    RunRule{
        "disturbed", warning, "other processes kept the machine busy, so the run was slower than on an idle machine",
        "the measurement includes the other processes", "stop the other processes, and run again", check_disturbance},
    RunRule{"throttled", warning, "the device's clock was throttled",
            "the measurement includes the cooling or the power limit",
            "fix the cooling or the power limit, or report the machine as it is", check_throttling},
    RunRule{"runs_disagree", warning, "the repetitions differ more than their steps explain",
            "an uncontrolled factor changes from run to run",
            "find it (placement, clocks, neighbours), or repeat more often", check_repetitions},
    RunRule{"outliers", warning, "many steps are outliers", "outliers count: the mean includes them",
            "look for checkpoints, garbage collection or other users", check_outliers<true>},
    RunRule{"few_steps", warning, "few steps", "short series hide their own noise", "run at least 30 steps",
            check_few_steps},
    RunRule{"few_runs", warning, "few runs, so the spread between runs is poorly known",
            "the spread between runs usually exceeds the noise within a run",
            "repeat with --runs 3 or more; results named NAME_r1.json, NAME_r2.json in one folder are repetitions",
            check_few_runs},
    RunRule{"copies", warning, "the same measurement under several names counts once", "a copy adds no information",
            "give each run's own file, and remove the copies", check_copies},
    RunRule{"active_parameters", warning, "the file states the active parameters as the parameter count",
            "a mixture of experts has more parameters than those that one token passes",
            "state all parameters in model_info.num_parameters", check_own_count},
    RunRule{"assumed_facts", warning, "facts of the run are assumed: its log does not state them",
            "the figures are wrong if the run differs from its configuration",
            "check them against the run, or have the trainer print them", check_assumed},
    RunRule{"precision_missing", warning, "the precision is unknown, so equal numerics cannot be shown", k_unknown_side,
            "pass --precision to tprimat extract", check_known<has_precision>},
    RunRule{"some_skipped_updates", note, "some updates were skipped", "fp16 finds its loss scale this way", "",
            check_skipped_updates<false>},
    RunRule{"trainable_missing", warning,
            "adapters are trained, but their parameter count is unknown, so there are no FLOPs and no MFU",
            "a frozen weight costs 4 FLOPs/token, a trained one 6",
            "have the trainer print it, or add model_info.trainable_parameters to a file of your own", check_adapters},
    RunRule{"shape_missing", warning, "the model's shape is unknown, so there are no FLOPs and no MFU", k_unknown_side,
            "pass --model with a model of the catalogue to tprimat extract", check_known<has_shape>},
    RunRule{"sequence_length_missing", warning, "the sequence length is unknown, and so is the work per token",
            k_unknown_side, "pass --sequence-length to tprimat extract", check_known<has_length>},
    RunRule{"loss_missing", warning, "no loss was recorded, so equal training cannot be shown", k_unknown_side,
            "have the trainer log the loss of every step", check_known<has_losses>},
    RunRule{"forced_balance", note, "balance is forced on the experts; real training is slower",
            "no rank waits for the fullest expert, and the router is overruled", "", check_forced_balance},
    RunRule{"tokens_dropped", note, "experts drop tokens for lack of capacity; MFU still counts their work",
            "the work of a dropped token is not done", "", check_dropping},
    RunRule{"load_effect", note, "the rate follows the experts' load", "all ranks wait for the fullest expert", "",
            check_load_effect},
    RunRule{"experts_counted_dense", note, "the framework's FLOPs count all experts, not only the active ones",
            "a token passes only some experts; TPRIMAT counts those", "", check_dense_count},
    RunRule{"gpu_cores_contradiction", note, "the file's gpu_cores are not those of its device",
            "the count of the catalogue is shown", "correct gpu_info.gpu_cores, or remove it", check_gpu_cores},
    RunRule{"learning_rate_missing", note, "no learning rate was recorded", k_unknown_side,
            "have the trainer log the learning rate", check_known<has_learning_rates>},
    RunRule{"framework_missing", note, "the framework is unknown", k_unknown_side,
            "extract the log with --format, or add \"framework\" to a file of your own", check_known<has_framework>},
    RunRule{"assumed_details", note, "platform, framework or price are assumed: the log does not state them",
            "they come from a configuration or from the log's path", "", check_assumed_details},
    RunRule{"rounded", note, "the log rounds its step times", "equal rounding at every step does not average out",
            "have the trainer print more digits", check_rounding},
    RunRule{"platform_missing", note, "the platform is unknown", k_unknown_side,
            "pass --platform or --device to tprimat extract", check_known<has_platform>},
    RunRule{"device_missing", note, "the device is unknown", k_unknown_side, "pass --device to tprimat extract",
            check_known<has_device>},
    RunRule{"outlier", note, "some steps are outliers; they count", "a checkpoint is part of what training costs", "",
            check_outliers<false>},
};

}  // namespace

std::span<const RunRule> run_rules() { return k_run_rules; }

}  // namespace tprimat::results
