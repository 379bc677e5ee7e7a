#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>

#include "compare/audit.h"
#include "compare/contender.h"
#include "compare/copies.h"
#include "compare/evidence.h"
#include "compare/model_differences.h"
#include "compare/printed_settings.h"
#include "compare/series.h"
#include "result/summary.h"
#include "text/format.h"

namespace tprimat {
namespace {

using Shown = std::optional<Proof>;
Shown unless_empty(Evidences evidence) { return evidence.empty() ? Shown() : Shown(Proof(std::move(evidence))); }

template <class T>
Shown differ(const std::optional<T>& reference, const std::optional<T>& subject) {
  Evidences evidence;
  add(evidence, "", reference, subject);
  return unless_empty(std::move(evidence));
}

Shown check_shape(const RunResult& a, const RunResult& b) { return unless_empty(find_other_work(a, b)); }
Shown check_details(const RunResult& a, const RunResult& b) { return unless_empty(find_other_details(a, b)); }
Shown check_data_settings(const RunResult& a, const RunResult& b) {
  return unless_empty(find_other_data_settings(a, b));
}
Shown check_tuning(const RunResult& a, const RunResult& b) { return unless_empty(find_other_tuning(a, b)); }
Shown check_recompute(const RunResult& a, const RunResult& b) {
  return differ(a.training_config.recompute, b.training_config.recompute);
}

Shown check_sequence_length(const RunResult& a, const RunResult& b) {
  Evidences evidence;
  add(evidence, "", a.training_config.sequence_length, b.training_config.sequence_length);
  if (!evidence.empty()) add(evidence, "tokens per step", tokens_per_step(a), tokens_per_step(b));
  return unless_empty(std::move(evidence));
}

Shown check_batch(const RunResult& a, const RunResult& b) {
  if (differ(a.training_config.sequence_length, b.training_config.sequence_length)) return std::nullopt;
  return differ(a.training_config.global_batch_size, b.training_config.global_batch_size);
}

Shown check_steps(const RunResult& a, const RunResult& b) {
  return differ(a.training_config.max_steps, b.training_config.max_steps);
}
Shown check_precision(const RunResult& a, const RunResult& b) { return differ(a.precision, b.precision); }
Shown check_dataset(const RunResult& a, const RunResult& b) { return differ(a.dataset, b.dataset); }
Shown check_seed(const RunResult& a, const RunResult& b) {
  return differ(a.training_config.seed, b.training_config.seed);
}
Shown check_devices(const RunResult& a, const RunResult& b) { return differ(device_count(a), device_count(b)); }

// Letters and digits in lower case, without the words that name an implementation.
std::string plain_words(const std::string& text, std::initializer_list<std::string_view> beside) {
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
  const std::string plain = plain_words(
      name, {"optimizernames", "distributed", "mcore", "fused", "torch", "apex", "cpu", "with", "optimizer", "optim"});
  if (plain.empty()) return name;
  return plain == "adam" || plain == "optim" ? "adamw" : plain;
}

// "CosineAnnealing", "cosine_with_min_lr" and "WarmupCosineLR" are one shape; a name of two shapes is neither.
std::string plain_schedule(const std::string& name) {
  const std::string plain = plain_words(name, {"schedulertype", "linearwarmup"});
  std::vector<std::string> shapes;
  for (const char* shape : {"cosine", "linear", "constant"})
    if (plain.find(shape) != std::string::npos) shapes.emplace_back(shape);
  return shapes.size() == 1 ? shapes.front() : plain;
}

Shown check_optimizer(const RunResult& a, const RunResult& b) {
  const TrainingConfig &x = a.training_config, &y = b.training_config;
  Evidences evidence;
  if (x.optimizer && y.optimizer && plain_optimizer(*x.optimizer) != plain_optimizer(*y.optimizer))
    add(evidence, "optimizer", x.optimizer, y.optimizer);
  add(evidence, "weight decay", x.weight_decay, y.weight_decay);
  add(evidence, "gradient clipping", x.clip_grad_norm, y.clip_grad_norm);
  return unless_empty(std::move(evidence));
}

// The recorded series is what happened; what was asked for speaks only where the two have no step in common.
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
  return unless_empty(std::move(evidence));
}

Curves loss_curves(const Contender& contender) {
  Curves curves;
  for (const LoadedRun& run : contender.runs)
    if (!run.result.loss_values.empty()) curves.push_back(curve_by_step(run.result, run.result.loss_values));
  return curves;
}

// Curves over steps are comparable only where a step is the same work.
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
  Proof proof(fmt::format("{} against {} nats at step {}, where {} would be within the band", nats(gap->reference),
                          nats(gap->subject), gap->step, nats(gap->allowed)));
  proof.evidence = {{fmt::format("loss at step {}, nats", gap->step), nats(gap->reference), nats(gap->subject)}};
  return proof;
}

Shown check_common_losses(const Sides& sides) {
  const auto comparison = compare_loss_curves(sides);
  return comparison && comparison->compared == 0 ? Shown("") : std::nullopt;
}

// Of either automatic rule the outcome differs from run to run; a fixed number was chosen by somebody.
Shown check_warmup(const RunResult& a, const RunResult& b) {
  const auto rule = [](const Warmup& warmup) {
    return warmup.method == "fixed" ? fmt::format("fixed, {}", warmup.steps_excluded) : std::string("detected");
  };
  if (a.warmup.method.empty() || b.warmup.method.empty()) return std::nullopt;
  return differ(std::optional(rule(a.warmup)), std::optional(rule(b.warmup)));
}

// No two trainings take the same time step by step.
Shown check_same_measurement(const Sides& sides) {
  Evidences evidence;
  for (const auto& [a, b] : find_same_measurements(sides.reference, sides.subject))
    evidence.push_back({"", a->path, b->path});
  return unless_empty(std::move(evidence));
}

// A size that a side does not tell is no difference.
Shown check_layout(const RunResult& a, const RunResult& b) {
  const ParallelismConfig &x = a.parallelism_config, &y = b.parallelism_config;
  Evidences evidence;
  add(evidence, "TP", x.tensor_model_parallel_size, y.tensor_model_parallel_size);
  add(evidence, "PP", x.pipeline_model_parallel_size, y.pipeline_model_parallel_size);
  add(evidence, "DP", x.data_parallel_size, y.data_parallel_size);
  add(evidence, "CP", x.context_parallel_size, y.context_parallel_size);
  if (evidence.empty()) return std::nullopt;
  return differ(std::optional(describe_layout(a)), std::optional(describe_layout(b)));
}

Shown check_memory(const RunResult& a, const RunResult& b) {
  const MemoryMetrics &x = a.memory_metrics, &y = b.memory_metrics;
  if (const Shown methods = differ(x.measurement_method, y.measurement_method)) {
    Proof proof("measured by " + methods->figures);
    proof.evidence = {{"measured by", *x.measurement_method, *y.measurement_method}};
    return proof;
  }
  const auto any = [](const MemoryMetrics& m) {
    return m.peak_memory_allocated_gb || m.peak_memory_reserved_gb || m.peak_device_used_gb;
  };
  const bool common = (x.peak_memory_allocated_gb && y.peak_memory_allocated_gb) ||
                      (x.peak_memory_reserved_gb && y.peak_memory_reserved_gb) ||
                      (x.peak_device_used_gb && y.peak_device_used_gb);
  return any(x) && any(y) && !common ? Shown("no kind of memory was recorded on both sides") : std::nullopt;
}

Shown check_formula(const RunResult& a, const RunResult& b) {
  if (a.derived.headline_formula.empty() || b.derived.headline_formula.empty()) return std::nullopt;
  return differ(std::optional(a.derived.headline_formula), std::optional(b.derived.headline_formula));
}

// "catalogue", "measured" or "config": the part of the peak's id before the first colon.
Shown check_peak(const RunResult& a, const RunResult& b) {
  if (!a.derived.peak || !b.derived.peak) return std::nullopt;
  const auto kind = [](const PeakInfo& peak) { return peak.id.substr(0, peak.id.find(':')); };
  Evidences evidence;
  add(evidence, "", kind(*a.derived.peak), kind(*b.derived.peak));
  return unless_empty(std::move(evidence));
}

// A measured peak varies with the machine; one that was typed in or looked up is one number for one device.
Shown check_peak_value(const RunResult& a, const RunResult& b) {
  if (!a.derived.peak || !b.derived.peak || check_peak(a, b)) return std::nullopt;
  const bool is_one_device = !a.gpu_info.device_name.empty() && a.gpu_info.device_name == b.gpu_info.device_name;
  if (!is_one_device || a.precision != b.precision || a.derived.peak->id.starts_with("measured")) return std::nullopt;
  Evidences evidence;
  add(evidence, "TFLOP/s", a.derived.peak->flops_per_second / 1e12, b.derived.peak->flops_per_second / 1e12);
  return unless_empty(std::move(evidence));
}

Evidences differing_software(const RunResult& a, const RunResult& b) {
  Evidences evidence;
  if (a.platform != b.platform || !a.framework || a.framework != b.framework) return evidence;
  add(evidence, "framework", a.framework_version, b.framework_version);
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
  return unless_empty(differing_software(a, b));
}

template <Shown (*check)(const RunResult&, const RunResult&)>
Shown of_first_runs(const Sides& sides) {
  return check(sides.reference.first(), sides.subject.first());
}

constexpr const char* k_other_work = "a ratio of rates over different work says nothing about speed";
constexpr const char* k_other_training = "a faster side that does not learn the same has not done the same work";
constexpr const char* k_mfu = "MFU would compare conventions, not machines";

using enum Severity;
constexpr std::array k_pair_rules = {
    PairRule{"model_shape", error, "the models differ in shape", k_other_work, "train the same model on both sides",
             of_first_runs<check_shape>},
    PairRule{"sequence_length", error, "the sequence lengths differ, so a token is not the same work",
             "attention costs more per token on longer sequences", "use one sequence length on both sides",
             of_first_runs<check_sequence_length>},
    PairRule{"precision", error, "the precisions differ", "half the bits are twice the peak: the ratio is of formats",
             "use one precision, or compare within each", of_first_runs<check_precision>},
    PairRule{"same_measurement", error, "one is a copy of the other: step for step both took the same time",
             "a copy says nothing about a second run, whatever facts stand beside it",
             "compare a run of its own, or leave the copy out", check_same_measurement},
    PairRule{"learning_rate", error, "the learning-rate schedules differ, so it is not the same training",
             k_other_training, "give both frameworks the same schedule: peak, end, shape, warm-up",
             of_first_runs<check_schedule>},
    PairRule{"loss", error, "the loss curves disagree, so it is not the same training", k_other_training,
             "make data, initial weights, batch and schedule agree until the curves do", check_losses},
    PairRule{"loss_not_compared", warning, "the loss curves have too few steps in common to be compared",
             k_other_training, "log the loss at the same steps on both sides, at five or more", check_common_losses},
    PairRule{"optimizer", error, "the optimizers differ", k_other_training,
             "give both frameworks the same optimizer settings", of_first_runs<check_optimizer>},
    PairRule{"dataset", warning, "the data differs", "other data may cost more to read, and its losses say nothing",
             "train on the same tokens in the same order", of_first_runs<check_dataset>},
    PairRule{"model_details", warning, "the models differ in details", "they cost little time, but are not one model",
             "train the same model on both sides", of_first_runs<check_details>},
    PairRule{"recompute", warning, "the recomputation of activations differs",
             "recomputation costs up to a third of the speed, saves memory, and is in no MFU",
             "recompute the same on both sides, or say that each runs as its memory allows",
             of_first_runs<check_recompute>},
    PairRule{"data_settings", warning, "settings that decide what is computed differ",
             "padding, dropout or an even load of experts change the work behind a token",
             "set them alike on both sides", of_first_runs<check_data_settings>},
    PairRule{"warmup", warning, "the warm-up was left out by different rules",
             "what one side leaves out the other counts", "leave `warmup` alike on both sides",
             of_first_runs<check_warmup>},
    PairRule{"steps", warning, "the numbers of steps differ", "a longer run sees more of what slows a machine down",
             "run the same number of steps", of_first_runs<check_steps>},
    PairRule{"device_count", warning, "the numbers of devices differ, so rates per device hold the cost of scaling",
             "more devices talk more: each of them is slower", "compare equal numbers of devices",
             of_first_runs<check_devices>},
    PairRule{"memory_meaning", warning, "the memory figures mean different things and are not compared",
             "allocated, reserved and device-used memory differ by gigabytes in one and the same run",
             "record the same kind of memory on both sides", of_first_runs<check_memory>},
    PairRule{"flop_formula", warning, "the FLOPs are counted by different formulas, so MFU is not compared", k_mfu,
             "derive both results again with this version", of_first_runs<check_formula>},
    PairRule{"peak", warning, "the peaks behind MFU are of different kinds, so MFU is not compared", k_mfu,
             "use catalogue peaks, or measured ones, for both", of_first_runs<check_peak>},
    PairRule{"peak_value", warning, "one device has two peaks, so MFU is not compared", k_mfu,
             "leave the peak to the catalogue on both sides", of_first_runs<check_peak_value>},
    PairRule{"hardware_and_software", warning, "hardware and software both differ, so the ratio is of neither alone",
             "a newer library may be worth more than a newer device",
             "run both devices with the same versions, or call it a comparison of whole systems",
             of_first_runs<check_software<false>>},
    PairRule{"software", note, "the software differs", "that is what is compared", "",
             of_first_runs<check_software<true>>},
    PairRule{"batch", note, "the batch differs: rates per token stay comparable, times per step do not",
             "larger batches use a device better", "", of_first_runs<check_batch>},
    PairRule{"layout", note, "the parallel layouts differ, as is expected where each side runs at its best",
             "layout decides how much is communicated", "", of_first_runs<check_layout>},
    PairRule{"tuning", note, "the tuning differs, as is expected where each side runs at its best",
             "what is compared is each side's best, not the device alone", "", of_first_runs<check_tuning>},
    PairRule{"seed", note, "the seeds differ", "losses differ a little, speed does not", "", of_first_runs<check_seed>},
};

}  // namespace

std::span<const PairRule> pair_rules() { return k_pair_rules; }

}  // namespace tprimat
