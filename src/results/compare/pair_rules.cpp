#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cmath>
#include <functional>

#include "compare/audit.h"
#include "compare/contender.h"
#include "compare/copies.h"
#include "compare/differences.h"
#include "compare/expert_rules.h"
#include "compare/figure_meanings.h"
#include "compare/machine_differences.h"
#include "compare/series.h"
#include "compare/time_to_train.h"
#include "compare/versions.h"
#include "result/printed_settings.h"
#include "result/summary.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

// `find` lists what differs.
template <Evidences (*find)(const RunResult&, const RunResult&)>
Shown check(const RunResult& a, const RunResult& b) {
  return show(find(a, b));
}

// `fact` of a run, a member or a function, is known on both sides and differs.
template <auto fact>
Shown differ(const RunResult& a, const RunResult& b) {
  return show_difference("", std::invoke(fact, a), std::invoke(fact, b));
}
template <auto setting>
Shown differ_in_training(const RunResult& a, const RunResult& b) {
  return show_difference("", a.training_config.*setting, b.training_config.*setting);
}

Shown check_model_known(const Sides& sides) {
  return is_model_unproven(sides.reference.first(), sides.subject.first())
             ? Shown("no shape, full name or parameter count is known on both sides")
             : std::nullopt;
}

// "all", a count, or the setting of the adapters.
std::string describe_trained(const RunResult& run) {
  if (const auto& trained = run.model_info.trainable_parameters) return format_count(static_cast<double>(*trained));
  const auto adapters = find_adapters(run);
  return adapters ? fmt::format("adapters ({})", *adapters) : "all";
}

// With adapters or frozen layers the same tokens take a third less work, and fewer weights are trained.
Shown check_trainable(const RunResult& a, const RunResult& b) {
  constexpr double k_tolerance = 0.01;  // counts with and without norms and biases
  const auto trained = [](const RunResult& run) {
    const auto& stated = run.model_info.trainable_parameters;
    return stated ? stated : find_adapters(run) ? std::nullopt : parameters_of(run);
  };
  const auto is_partial = [](const RunResult& run) {
    const auto &stated = run.model_info.trainable_parameters, all = parameters_of(run);
    if (stated && all) return static_cast<double>(*stated) < (1 - k_tolerance) * static_cast<double>(*all);
    return stated || find_adapters(run);
  };
  const bool a_is_partial = is_partial(a), b_is_partial = is_partial(b);
  if (!a_is_partial && !b_is_partial) return std::nullopt;
  const auto x = trained(a), y = trained(b);
  const bool is_same_kind = a_is_partial == b_is_partial;
  const bool is_near = x && y && std::abs(static_cast<double>(*x - *y)) <= k_tolerance * static_cast<double>(*x);
  if (is_same_kind && (is_near || !x || !y)) return std::nullopt;
  return Proof(Evidences{{"", describe_trained(a), describe_trained(b)}});
}

Evidences find_other_length(const RunResult& a, const RunResult& b) {
  Evidences evidence;
  add(evidence, "", a.training_config.sequence_length, b.training_config.sequence_length);
  if (!evidence.empty()) add(evidence, "tokens per step", tokens_per_step(a), tokens_per_step(b));
  return evidence;
}

Shown check_batch(const RunResult& a, const RunResult& b) {
  if (differ_in_training<&TrainingConfig::sequence_length>(a, b)) return std::nullopt;
  return differ_in_training<&TrainingConfig::global_batch_size>(a, b);
}

// Known batches and lengths have separate rules.
Shown check_step_work(const Sides& sides) {
  const auto is_told = [](const RunResult& run) {
    return run.training_config.global_batch_size && run.training_config.sequence_length;
  };
  const RunResult &a = sides.reference.first(), &b = sides.subject.first();
  const auto x = tokens_per_step(a), y = tokens_per_step(b);
  if (!x || !y) return "the tokens per step are not known on both sides";
  return is_told(a) && is_told(b) ? std::nullopt : show_difference("", x, y);
}

// Letters and digits in lower case, without the words that name an implementation.
std::string normalized_name(const std::string& text, std::initializer_list<std::string_view> beside) {
  std::string plain;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c))) plain += static_cast<char>(std::tolower(c));
  for (const std::string_view word : beside)
    if (const size_t at = plain.find(word); at != std::string::npos && plain.size() > word.size())
      plain.erase(at, word.size());
  return plain;
}

// "Adam" of Megatron-LM, DeepSpeed and NeMo decouples the decay, as AdamW does.
std::string plain_optimizer(const std::string& name) {
  const std::string plain = normalized_name(
      name, {"optimizernames", "distributed", "mcore", "fused", "torch", "apex", "cpu", "with", "optimizer", "optim"});
  if (plain.empty()) return name;
  return plain == "adam" || plain == "optim" ? "adamw" : plain;
}

// "CosineAnnealing", "cosine_with_min_lr" and "WarmupCosineLR" are one shape; a name of two shapes is neither.
std::string plain_schedule(const std::string& name) {
  const std::string plain = normalized_name(name, {"schedulertype", "linearwarmup"});
  std::vector<std::string> shapes;
  for (const char* shape : {"cosine", "linear", "constant"})
    if (plain.find(shape) != std::string::npos) shapes.emplace_back(shape);
  return shapes.size() == 1 ? shapes.front() : plain;
}

Evidences find_other_optimizer(const RunResult& a, const RunResult& b) {
  const TrainingConfig &x = a.training_config, &y = b.training_config;
  Evidences evidence;
  if (x.optimizer && y.optimizer && plain_optimizer(*x.optimizer) != plain_optimizer(*y.optimizer))
    add(evidence, "optimizer", x.optimizer, y.optimizer);
  add(evidence, "weight decay", x.weight_decay, y.weight_decay);
  add(evidence, "gradient clipping", x.clip_grad_norm, y.clip_grad_norm);
  return evidence;
}

// The recorded series decides; the requested settings count only if the two have no step in common.
Shown check_schedule(const RunResult& a, const RunResult& b) {
  const auto [compared, gap] =
      compare_learning_rates(curve_by_step(a, a.learning_rates), curve_by_step(b, b.learning_rates));
  if (compared > 0) {
    if (!gap) return std::nullopt;
    return Proof(Evidences{{fmt::format("at step {}", gap->step), fmt::format("{:.2e}", gap->reference),
                            fmt::format("{:.2e}", gap->subject)}});
  }
  const TrainingConfig &x = a.training_config, &y = b.training_config;
  Evidences evidence;
  add(evidence, "peak", x.learning_rate, y.learning_rate);
  add(evidence, "end", x.min_learning_rate, y.min_learning_rate);
  if (x.schedule && y.schedule && plain_schedule(*x.schedule) != plain_schedule(*y.schedule))
    add(evidence, "shape", x.schedule, y.schedule);
  add(evidence, "warm-up steps", x.warmup_steps, y.warmup_steps);
  return show(std::move(evidence));
}

Curves loss_curves(const Contender& contender) {
  Curves curves;
  for (const LoadedRun& run : contender.runs)
    if (!run.result.loss_values.empty()) curves.push_back(curve_by_step(run.result, run.result.loss_values));
  return curves;
}

// Curves over steps are comparable only if a step is the same work.
std::optional<SeriesComparison> compare_loss_curves(const Sides& sides) {
  const auto x = tokens_per_step(sides.reference.first()), y = tokens_per_step(sides.subject.first());
  const Curves reference = loss_curves(sides.reference), subject = loss_curves(sides.subject);
  if (!x || x != y || reference.empty() || subject.empty()) return std::nullopt;
  return compare_losses(reference, subject, sides.options.loss_tolerance);
}

Shown check_losses(const Sides& sides) {
  const auto comparison = compare_loss_curves(sides);
  if (!comparison || !comparison->gap) return std::nullopt;
  const auto& gap = comparison->gap;
  const auto nats = [](double loss) { return format_significant(loss, 3); };
  Proof proof(fmt::format("{} against {} nats at step {}; the band allows a difference of {}", nats(gap->reference),
                          nats(gap->subject), gap->step, nats(gap->allowed)));
  proof.evidence = {{fmt::format("loss at step {}, nats", gap->step), nats(gap->reference), nats(gap->subject)}};
  return proof;
}

Shown check_common_losses(const Sides& sides) {
  const auto comparison = compare_loss_curves(sides);
  return comparison && comparison->compared == 0 ? Shown("") : std::nullopt;
}

// Two trainings never have the same times step by step.
Shown check_same_measurement(const Sides& sides) {
  Evidences evidence;
  for (const auto& [a, b] : find_same_measurements(sides.reference, sides.subject))
    evidence.push_back({"", a->path, b->path});
  return show(std::move(evidence));
}

// A size that a side does not state is not a difference.
Shown check_layout(const RunResult& a, const RunResult& b) {
  const ParallelismConfig &x = a.parallelism_config, &y = b.parallelism_config;
  Evidences evidence;
  add(evidence, "TP", x.tensor_model_parallel_size, y.tensor_model_parallel_size);
  add(evidence, "PP", x.pipeline_model_parallel_size, y.pipeline_model_parallel_size);
  add(evidence, "DP", x.data_parallel_size, y.data_parallel_size);
  add(evidence, "CP", x.context_parallel_size, y.context_parallel_size);
  add(evidence, "EP", x.expert_model_parallel_size, y.expert_model_parallel_size);
  add(evidence, "ETP", x.expert_tensor_parallel_size, y.expert_tensor_parallel_size);
  if (evidence.empty()) return std::nullopt;
  return show_difference("", std::optional(describe_layout(a)), std::optional(describe_layout(b)));
}

// On one device another version of the framework is what is compared, as the rule `versions` says.
Evidences differing_software(const RunResult& a, const RunResult& b) {
  Evidences evidence;
  if (a.platform != b.platform || !a.framework || a.framework != b.framework) return evidence;
  if (a.gpu_info.device_name != b.gpu_info.device_name)
    add(evidence, "framework", framework_version_of(a), framework_version_of(b));
  add(evidence, "stack", a.gpu_info.software_version, b.gpu_info.software_version);
  add(evidence, "PyTorch", a.gpu_info.pytorch_version, b.gpu_info.pytorch_version);
  for (const auto& [key, value] : a.environment)
    if (const auto other = b.environment.find(key); key.ends_with("driver") && other != b.environment.end())
      add(evidence, key.c_str(), value, other->second);
  return evidence;
}

template <bool on_one_device>
Shown check_software(const RunResult& a, const RunResult& b) {
  if ((a.gpu_info.device_name == b.gpu_info.device_name) != on_one_device) return std::nullopt;
  return show(differing_software(a, b));
}

// A log does not tell what was loaded.
std::optional<int64_t> first_step(const RunResult& run) { return run.training_config.loaded_step.value_or(0) + 1; }

constexpr const char* k_other_work = "a ratio of rates over different work says nothing about speed";
constexpr const char* k_other_training = "different training is different work, whatever its speed";
constexpr const char* k_cost = "cost would compare price lists, not machines";
constexpr const char* k_sensors = "device counters exclude the power that the rest of the machine draws";
constexpr const char* k_mfu = "MFU would compare conventions, not machines";

using enum Severity;
constexpr std::array k_pair_rules = {
    PairRule{"model_shape", error, "the models differ in shape", k_other_work, "train the same model on both sides",
             check<find_other_work>},
    PairRule{"sparse_against_dense", error, "one side is a mixture of experts, the other a dense model",
             "with equal tokens they reach different losses, so tokens/s alone decide nothing",
             "compare the time or the cost to one target quality", check_sparse_against_dense},
    PairRule{"routing", error, "one side forces balance on the experts, the other learns its routing",
             "with forced balance no rank waits for the fullest expert; real training is slower",
             "use the same routing on both sides: learned routing, if the speed of real training counts",
             check_routing},
    PairRule{"expert_capacity", error, "the experts' capacity factors differ, so one side may drop more tokens",
             "the work of a dropped token is not done", "use the same capacity factor on both sides, or none",
             check_capacity},
    PairRule{"dropped_tokens", error, "the shares of dropped tokens differ", "the work of a dropped token is not done",
             "train without dropping tokens, or compare runs that drop equal shares", check_dropped_tokens, error},
    PairRule{"prediction_layers", error, "the numbers of layers that predict further tokens (MTP) differ",
             "each such layer, with its pass through the head, is more work per token",
             "use the same number on both sides", check_prediction_layers},
    PairRule{"expert_balancing", error, "the balancing of the experts differs, so the training differs",
             "other losses or biases train a different router with a different load",
             "use the same balancing on both sides", check_balancing},
    PairRule{"trainable_parameters", error, "the trained parameters differ",
             "a frozen weight has no weight gradient, which saves a third of its FLOPs",
             "train the same parameters on both sides", check_trainable},
    PairRule{"model_not_shown", warning, "the models cannot be shown to be the same",
             "one name may stand for several sizes and versions of a model",
             "pass --model to tprimat extract, or add model_info.shape to the file", check_model_known},
    PairRule{"routing_not_shown", warning, "the experts' routing is unknown, so balance may be forced",
             "with forced balance no rank waits for the fullest expert; real training is slower",
             "have the trainer print its settings, or add experts.routing to a file of your own", check_routing_known},
    PairRule{"balancing_not_shown", warning, "only one side states how the experts are balanced",
             "other losses or biases train a different router with a different load",
             "have the trainer print its settings, or add them to model_info.shape.experts", check_balancing_known},
    PairRule{"expert_load", warning, "the load of the fullest expert differs, which may explain the ratio",
             "all ranks wait for the fullest expert, on any device",
             "compare steps of equal load, such as later ones, or repeat with other seeds", check_expert_load, warning},
    PairRule{"active_against_total", warning, "one side states its active parameters, the other all parameters",
             "both counts may be those of one model", "pass --model to tprimat extract", check_active_count},
    PairRule{"sequence_length", error, "the sequence lengths differ, and so does the work per token",
             "attention costs more per token on longer sequences", "use one sequence length on both sides",
             check<find_other_length>},
    PairRule{"precision", error, "the precisions differ",
             "half the bits double the peak: the ratio would compare formats",
             "use one precision on both sides, or compare each precision separately", differ<&RunResult::precision>},
    PairRule{"same_measurement", error, "one is a copy of the other: the times of all steps are equal",
             "a copy is not a second run, even if its file states different facts",
             "compare an independent run, or remove the copy", check_same_measurement},
    PairRule{"nothing_common", error, "the two sides have no figure of speed in common",
             "a time to train is no rate, and times to different targets are different work",
             "compare runs of one benchmark, or logs that report their steps", check_nothing_common},
    PairRule{"learning_rate", error, "the learning-rate schedules differ, so the training differs", k_other_training,
             "give both frameworks the same schedule: peak, end, shape, warm-up", check_schedule},
    PairRule{"loss", error, "the loss curves disagree, so the training differs", k_other_training,
             "align data, initial weights, batch and schedule until the curves agree", check_losses, error},
    PairRule{"loss_not_compared", warning, "the loss curves have too few common steps to compare", k_other_training,
             "log the loss at the same steps on both sides, at least five", check_common_losses},
    PairRule{"optimizer", error, "the optimizers differ", k_other_training,
             "give both frameworks the same optimizer settings", check<find_other_optimizer>},
    PairRule{"dataset", warning, "the data differs",
             "other data may cost more to read, and its losses are not comparable",
             "train on the same tokens in the same order", differ<&RunResult::dataset>},
    PairRule{"model_details", warning, "the models differ in details",
             "they cost little time, but the models are not identical", "train the same model on both sides",
             check<find_other_details>},
    PairRule{"recompute", warning, "the activation recomputation differs",
             "recomputation saves memory but costs up to a third of the rate, and MFU does not count it",
             "use the same recomputation on both sides, or report that each uses what its memory allows",
             differ_in_training<&TrainingConfig::recompute>},
    PairRule{"data_settings", error, "settings that change the computation differ",
             "padding and dropout change the work per token", "use the same settings on both sides",
             check<find_other_data_settings>},
    PairRule{"synthetic_data", warning, "one side trains on synthetic data", "loading real data may cost time",
             "train both sides on the same data", check<find_synthetic_data>},
    PairRule{"warmup", warning, "the sides exclude the warm-up by different rules",
             "one side counts steps that the other excludes", "use the same `warmup` on both sides",
             differ<warmup_rule>},
    PairRule{"steps", warning, "the step counts differ", "a longer run meets more slowdowns",
             "run the same number of steps", differ_in_training<&TrainingConfig::max_steps>},
    PairRule{"device_count", warning, "the device counts differ, so rates per device include the cost of scaling",
             "more devices communicate more, so each is slower", "compare equal device counts", differ<device_count>},
    PairRule{"machine_findings", warning, "tprimat doctor found more before the runs of one side",
             "a busy, hot or throttled machine is slower, whatever it runs",
             "fix the findings of tprimat doctor there, and run again", check_machine_findings},
    PairRule{"time_to_train_rules", warning, "the times to train follow different rules and are not compared",
             "another benchmark, target or evaluation is other work",
             "compare runs of one benchmark and division that reached one target", check<find_other_rules>},
    PairRule{"memory_meaning", warning, "the memory figures mean different things and are not compared",
             "allocated, reserved and device-used memory differ by gigabytes within one run",
             "record the same kind of memory on both sides", check_memory},
    PairRule{"flop_formula", warning, "the FLOPs are counted by different formulas, so MFU is not compared", k_mfu,
             "recompute both results with this version", differ<formula>},
    PairRule{"peak", warning, "the MFU figures use different kinds of peaks, so MFU is not compared", k_mfu,
             "use catalogue peaks, or measured ones, for both", differ<peak_kind>},
    PairRule{"peak_value", warning, "one device has two peaks, so MFU is not compared", k_mfu,
             "leave the peak to the catalogue on both sides", check_peak_value},
    PairRule{"price", warning, "one device has two prices, so costs are not compared", k_cost,
             "give the device the same price on both sides", check_price},
    PairRule{"hardware_and_software", warning, "hardware and software both differ, so the ratio isolates neither",
             "a newer library may be worth more than a newer device",
             "run both devices with the same versions, or call it a comparison of whole systems",
             check_software<false>},
    PairRule{"versions", note, "two versions of one framework are compared, not two platforms",
             "the ratio is the effect of the version, as far as nothing else differs", "", check<find_versions>,
             warning},
    PairRule{"software", note, "the software differs", "the ratio includes the effect of the software", "",
             check_software<true>, warning},
    PairRule{"start", note, "the trainings start at different steps",
             "a later step has another learning rate and another loss", "", differ<first_step>, warning},
    PairRule{"batch", note, "the batch differs: rates per token stay comparable, times per step do not",
             "larger batches use a device better", "", check_batch, error},
    PairRule{"layout", note, "the parallel layouts differ, as expected when each side runs at its best",
             "the layout determines the communication volume", "", check_layout, warning},
    PairRule{"tuning", note, "the tuning differs, as expected when each side runs at its best",
             "the ratio compares each side at its best, not the devices alone", "", check<find_other_tuning>, warning},
    PairRule{"step_work", note, "the work per step cannot be shown to be equal, so step times are not compared",
             "a step with less work takes less time", "", check_step_work},
    PairRule{"record_span", note,
             "records average different numbers of steps, so spreads of step times are not compared",
             "means vary less than single steps", "", differ<record_span>},
    PairRule{"total_steps", note, "the counts of timed steps differ, so total times are not compared",
             "more steps take longer", "", differ<total_steps>},
    PairRule{"loss_steps", note, "the final losses average different steps and are not compared",
             "the loss falls from step to step", "", differ<loss_steps>},
    PairRule{"memory_source", note, "the device reported the memory in use on one side, and the system on the other",
             "a process holds more memory than it uses on a device", "", differ<memory_source>},
    PairRule{"power_source", note, "different sensors measured the power, so it is not compared", k_sensors, "",
             differ<power_source>},
    PairRule{"energy_source", note, "different sensors measured the energy, so it is not compared", k_sensors, "",
             differ<energy_source>},
    PairRule{"seed", note, "the seeds differ", "losses differ a little, speed does not", "",
             differ_in_training<&TrainingConfig::seed>},
};

}  // namespace

std::span<const PairRule> pair_rules() { return k_pair_rules; }

}  // namespace tprimat::results
