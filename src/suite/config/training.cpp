#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "config/draft.h"
#include "config/values.h"
#include "text/choice.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

void resolve_experiment(Draft& draft) {
  raw::ExperimentSection& from = draft.raw.experiment;
  Experiment& to = draft.experiment;
  to.name = from.name.value_or("");
  to.description = from.description.value_or("");
  to.version = from.version.value_or("");
  to.methodology = take_or<std::string>(draft, from.methodology, "experiment.methodology", "single");
  to.profiling = take_or(draft, from.profiling, "experiment.profiling", false);
  to.profile_steps = take_or<int64_t>(draft, from.profile_steps, "experiment.profile_steps", 0);
  to.logging = take_or(draft, from.logging, "experiment.logging", true);
}

void resolve_chosen_frameworks(Draft& draft) {
  draft.experiment.adapt = draft.raw.experiment.adapt.value_or(Adapt::strict);
  if (!draft.raw.experiment.frameworks) return;
  for (std::string& name : *draft.raw.experiment.frameworks) {
    if (name == "all") {
      draft.experiment.all_frameworks = true;
      continue;
    }
    if (const auto choice = find_framework_choice(name)) {
      draft.experiment.frameworks.push_back(*choice);
      name = choice->name();
      continue;
    }
    const std::string id = name.substr(0, name.find('@'));
    draft.diagnosis.add_error(
        {fmt::format("'{}' is not a framework; the choices are {} and all", id, enum_choices<Framework>()),
         origin_of(draft.tree, "experiment.frameworks"), suggest_word(id, names_of<Framework>())});
  }
}

// Whether warmup_fraction counts: an override beats the file, and stating both in one place is an error.
bool is_fraction_chosen(Draft& draft, const std::string& fraction, const std::string& steps) {
  if (!is_stated(draft.tree, steps)) return true;
  const bool chosen = is_overridden(draft.tree, fraction);
  if (chosen == is_overridden(draft.tree, steps))
    draft.fail(fraction, fmt::format("{} and warmup_steps are both set", fraction),
               fmt::format("keep one of them; warmup_steps is set at {}", origin_of(draft.tree, steps)));
  return chosen;
}

// The settings show the resulting number of steps.
void resolve_warmup_fraction(Draft& draft) {
  raw::Optimizer& from = draft.raw.training.optimizer;
  const std::string path = "training.optimizer.warmup_fraction", steps_path = "training.optimizer.warmup_steps";
  const std::optional<double> fraction = std::exchange(from.warmup_fraction, std::nullopt);
  if (!fraction || !draft.diagnosis.are_sound({path, steps_path, "training.duration"})) return;
  if (!is_fraction_chosen(draft, path, steps_path)) return;
  const int64_t steps = draft.experiment.steps;
  from.warmup_steps = std::min<int64_t>(std::llround(*fraction * static_cast<double>(steps)), steps - 1);
  draft.derived[steps_path] = derived_by(fmt::format("warmup_fraction {} of max_steps {}", *fraction, steps));
}

// As people write it: 3e-05 of 3e-4, where the division gives 2.9999999999999997e-05.
double tenth_of(double rate) {
  const std::string text = fmt::format("{:.15g}", rate / 10);
  double tenth = rate / 10;
  std::from_chars(text.data(), text.data() + text.size(), tenth);
  return tenth;
}

void resolve_optimizer(Draft& draft) {
  raw::Optimizer& from = draft.raw.training.optimizer;
  OptimizerSpec& to = draft.experiment.optimizer;
  const std::string path = "training.optimizer";
  for_each_pair(from, to, [&](std::string_view key, auto& stated, auto& value) {
    if (key == "min_learning_rate") return;
    value = take_or(draft, stated, join_path(path, std::string(key)), value);
  });
  to.min_learning_rate = take_or(draft, from.min_learning_rate, path + ".min_learning_rate", tenth_of(to.learning_rate),
                                 derived_by("a tenth of learning_rate"));
  if (to.type == "adam") to.type = "adamw";
  if (to.type != "adamw" && draft.is_sound(path + ".type"))
    draft.diagnosis.add_error({fmt::format("training.optimizer.type must be adamw or adam, got '{}'", to.type),
                               origin_of(draft.tree, path + ".type"), ""});
  if (to.min_learning_rate > to.learning_rate &&
      draft.diagnosis.are_sound({path + ".learning_rate", path + ".min_learning_rate"}))
    draft.diagnosis.add_error({fmt::format("training.optimizer.min_learning_rate {} is above learning_rate {}",
                                           to.min_learning_rate, to.learning_rate),
                               origin_of(draft.tree, path + ".min_learning_rate"),
                               "lower it: the learning rate decays from the peak to it"});
}

void resolve_batch(Draft& draft) {
  raw::Data& from = draft.raw.training.data;
  Experiment& to = draft.experiment;
  to.micro_batch_size = take_or<int64_t>(draft, from.micro_batch_size, "training.data.micro_batch_size", 1);
  to.global_batch_size = take_or<int64_t>(draft, from.global_batch_size, "training.data.global_batch_size", 1);
  to.sequence_length = take_or<int64_t>(draft, from.seq_length, "training.data.seq_length", 1024);
  to.seed = take_or<int64_t>(draft, draft.raw.training.general.seed, "training.general.seed", 42);
}

// Few steps must not fail because of a warm-up that nobody stated, nor an override to few (TRAIN_ITERS=3) because of
// the file's.
void shorten_warmup(Draft& draft, const std::string& path) {
  Experiment& to = draft.experiment;
  const int64_t before = to.optimizer.warmup_steps;
  to.optimizer.warmup_steps = to.steps / 10;
  draft.raw.training.optimizer.warmup_steps = to.optimizer.warmup_steps;
  draft.derived[path] = derived_by("shortened to fit max_steps");
  draft.warn("training.duration.max_steps", fmt::format("{} {} is not below max_steps {}: using {} instead", path,
                                                        before, to.steps, to.optimizer.warmup_steps));
}

void check_warmup(Draft& draft) {
  const Experiment& to = draft.experiment;
  const int64_t warmup = to.optimizer.warmup_steps;
  const std::string path = "training.optimizer.warmup_steps";
  if (warmup < to.steps) return;
  if (!draft.diagnosis.are_sound({path, "training.optimizer.warmup_fraction", "training.duration"})) return;
  const bool is_short_by_override = is_overridden(draft.tree, "training.duration.max_steps");
  if (!is_stated(draft.tree, path) || (is_short_by_override && !is_overridden(draft.tree, path)))
    return shorten_warmup(draft, path);
  draft.fail(path, fmt::format("training.optimizer.warmup_steps {} is not below max_steps {}", warmup, to.steps),
             fmt::format("set warmup_steps to {}, or max_steps to {}", to.steps / 10, 10 * warmup));
}

void resolve_checkpointing(Draft& draft) {
  raw::Checkpointing& from = draft.raw.training.checkpointing;
  const std::string path = "training.checkpointing.";
  CheckpointSetup& to = draft.experiment.checkpoints;
  to.enabled = take_or(draft, from.enabled, path + "enabled", false);
  to.save_interval = take_or<int64_t>(draft, from.save_interval, path + "save_interval", 1000);
  to.keep_last = take_or<int64_t>(draft, from.keep_last_n, path + "keep_last_n", 2);
}

void resolve_warmup(Draft& draft) {
  const std::string text = take_or<std::string>(draft, draft.raw.benchmarking.warmup, "benchmarking.warmup", "auto");
  if (text == "auto") return;
  const auto steps = parse_whole(yaml_scalar(text, {}));
  if (steps && *steps >= 0 && *steps < draft.experiment.steps) {
    draft.experiment.fixed_warmup_steps = steps;
    return;
  }
  if (!draft.diagnosis.are_sound({"benchmarking.warmup", "training.duration"})) return;
  draft.diagnosis.add_error(
      {fmt::format("benchmarking.warmup must be auto or a number of steps below max_steps {}, got '{}'",
                   draft.experiment.steps, text.substr(0, 40)),
       origin_of(draft.tree, "benchmarking.warmup"), ""});
}

// {platform}, {framework} and {model} are filled in; anything else in braces is an error.
void check_placeholders(Draft& draft, const std::string& format, const std::string& path) {
  const std::vector<std::string> known = {"platform", "software_stack", "framework", "model"};
  for (size_t at = format.find('{'); at != std::string::npos; at = format.find('{', at + 1)) {
    const size_t end = format.find('}', at);
    const std::string word = format.substr(at + 1, end == std::string::npos ? end : end - at - 1);
    if (end != std::string::npos && std::find(known.begin(), known.end(), word) != known.end()) continue;
    return draft.fail(
        path,
        fmt::format("{}: unknown placeholder {{{}}}; use {{platform}}, {{software_stack}}, {{framework}} or {{model}}",
                    path, word.substr(0, 40)));
  }
}

// Each platform has a software stack of its own.
bool fills(const std::string& format, std::string_view word) {
  if (word == "{platform}" && format.find("{software_stack}") != std::string::npos) return true;
  return format.find(word) != std::string::npos;
}

void warn_shared_name(Draft& draft, const std::string& key, const std::string& format,
                      std::initializer_list<const char*> words) {
  const std::string path = "benchmarking.output." + key;
  std::vector<std::string> missing;
  for (const char* word : words)
    if (!fills(format, word) && draft.is_sound(path)) missing.emplace_back(word);
  if (!missing.empty())
    draft.remark(path, "files may overwrite each other, by benchmarking.output",
                 fmt::format("{} '{}' lacks {}", key, format, join(missing, " and ")));
}

void resolve_output(Draft& draft) {
  raw::Output& from = draft.raw.benchmarking.output;
  Experiment& to = draft.experiment;
  const std::string path = "benchmarking.output.";
  to.output_directory = take_or(draft, from.directory, path + "directory", to.output_directory);
  to.result_filename = take_or(draft, from.filename_format, path + "filename_format", to.result_filename);
  to.log_filename = take_or(draft, from.log_format, path + "log_format", to.log_filename);
  if (to.output_directory.empty())
    draft.diagnosis.add_error(
        {"benchmarking.output.directory is empty", origin_of(draft.tree, path + "directory"), ""});
  check_placeholders(draft, to.result_filename, path + "filename_format");
  check_placeholders(draft, to.log_filename, path + "log_format");
  if (!to.result_filename.ends_with(".json") && draft.is_sound(path + "filename_format"))
    draft.fail(path + "filename_format",
               fmt::format("{}filename_format must end in .json, got '{}'", path, printable(to.result_filename)),
               "compare, export and archive read results from files of that name");
  warn_shared_name(draft, "filename_format", to.result_filename, {"{platform}", "{framework}", "{model}"});
  warn_shared_name(draft, "log_format", to.log_filename, {"{framework}", "{model}"});
}

void resolve_paths(Draft& draft) {
  for (const auto& [framework, path] : draft.raw.paths.entries)
    for_each_field<raw::Path>([&, name = framework, &entry = path](const auto& each) {
      if (const auto& value = entry.*each.member) draft.experiment.paths[name + "." + std::string(each.key)] = *value;
    });
}

constexpr const char* k_split_hint = "give the weights of training, validation and test, such as 949,50,1";

template <class Raw, class Spec>
void take_pairs(Draft& draft, Raw& from, Spec& to, const std::string& path) {
  for_each_pair(from, to, [&](std::string_view key, auto& stated, auto& value) {
    value = take_or(draft, stated, join_path(path, std::string(key)), value);
  });
}

void resolve_loss_scale(Draft& draft) {
  const std::string path = "training.precision.loss_scale";
  LossScaleSpec& to = draft.experiment.loss_scale;
  take_pairs(draft, draft.raw.training.precision.loss_scale, to, path);
  if (to.minimum <= to.initial || !draft.is_sound(path)) return;
  draft.fail(path + ".minimum", fmt::format("{}.minimum {} is above initial {}", path, to.minimum, to.initial),
             "lower minimum: the scale starts at initial and never falls below minimum");
}

void resolve_anomalies(Draft& draft) {
  const std::string path = "training.anomalies";
  raw::Anomalies& from = draft.raw.training.anomalies;
  AnomalySpec& to = draft.experiment.anomalies;
  const bool spike_is_stated = from.spike.has_value();
  const auto not_finite = take_or(draft, from.not_finite, path + ".not_finite", raw::OnNotFinite::stop);
  to.not_finite = not_finite == raw::OnNotFinite::skip ? OnAnomaly::skip : OnAnomaly::stop;
  take_pairs(draft, from, to, path);
  if (!draft.is_sound(path)) return;
  if (to.spike_factor > 0 && to.spike_factor <= 1)
    draft.fail(path + ".spike_factor",
               fmt::format("{}.spike_factor must be 0 or above 1, got {}", path, to.spike_factor),
               "a loss above this multiple of its running mean is a spike");
  if (to.spike_factor == 0 && spike_is_stated)
    draft.warn(path + ".spike",
               fmt::format("{}.spike is {}, but spike_factor 0 disables spike detection", path, enum_name(to.spike)),
               "for example  spike_factor: 2");
}

// Weights of training, validation and test as data/sample_order.h reads them; nothing for malformed text.
std::optional<std::array<double, 3>> parse_split(std::string text) {
  std::erase(text, ' ');
  std::array<double, 3> weights{};
  const char *at = text.data(), *const end = at + text.size();
  for (double& weight : weights) {
    const auto [stop, failure] = std::from_chars(at, end, weight, std::chars_format::fixed);
    if (failure != std::errc() || !(weight >= 0) || !std::isfinite(weight)) return std::nullopt;
    at = stop;
    if (at == end) break;
    if (*at++ != ',') return std::nullopt;
  }
  const double sum = weights[0] + weights[1] + weights[2];
  return at == end && sum > 0 && std::isfinite(sum) ? std::optional(weights) : std::nullopt;
}

void require_validation_data(Draft& draft, double weight) {
  const std::string path = "training.evaluation.interval";
  if (draft.experiment.evaluation.interval == 0 || weight > 0 || !draft.is_sound(path)) return;
  for (const ModelEntry& model : draft.experiment.models) {
    if (model.dataset == "synthetic") continue;
    return draft.fail(
        path,
        fmt::format("{} is {}, but training.data.split {} leaves no validation data in models.{}.dataset_path", path,
                    draft.experiment.evaluation.interval, draft.experiment.data_split, model.spec.name),
        k_split_hint);
  }
}

void resolve_evaluation(Draft& draft) {
  const std::string path = "training.data.split";
  take_pairs(draft, draft.raw.training.evaluation, draft.experiment.evaluation, "training.evaluation");
  draft.experiment.data_split = take_or(draft, draft.raw.training.data.split, path, draft.experiment.data_split);
  if (!draft.is_sound(path)) return;
  const auto weights = parse_split(draft.experiment.data_split);
  if (!weights)
    return draft.fail(path,
                      fmt::format("{} must be up to three comma-separated weights with a positive sum, got '{}'", path,
                                  draft.experiment.data_split.substr(0, 40)),
                      k_split_hint);
  if ((*weights)[0] == 0)
    return draft.fail(path, fmt::format("{} {} leaves no training data", path, draft.experiment.data_split),
                      k_split_hint);
  require_validation_data(draft, (*weights)[1]);
}

// A setting of experts without any is a mistake.
template <class Choice>
void take_expert_setting(Draft& draft, const std::optional<Choice>& stated, const std::string& path,
                         std::optional<Choice>& to) {
  to = stated;
  if (!stated || !draft.diagnosis.are_sound({path, "models"})) return;
  if (std::ranges::any_of(draft.experiment.models, [](const ModelEntry& each) { return each.spec.is_sparse(); }))
    return;
  draft.fail(path, fmt::format("{} is {}, but no model has experts", path, enum_name(*stated)),
             "leave it out, or choose a mixture of experts");
}

}  // namespace

void resolve_training(Draft& draft) {
  resolve_experiment(draft);
  resolve_chosen_frameworks(draft);
  draft.experiment.steps =
      take_or<int64_t>(draft, draft.raw.training.duration.max_steps, "training.duration.max_steps", 100);
  resolve_warmup_fraction(draft);
  resolve_optimizer(draft);
  resolve_batch(draft);
  check_warmup(draft);
  resolve_checkpointing(draft);
  draft.experiment.runs = take_or<int64_t>(draft, draft.raw.benchmarking.runs, "benchmarking.runs", 1);
  draft.experiment.cool_down_seconds = draft.raw.benchmarking.cool_down_seconds.value_or(0);
  resolve_warmup(draft);
  draft.experiment.planner_parameters = draft.raw.benchmarking.planner_parameters.value_or("");
  draft.experiment.performance_metrics =
      draft.raw.benchmarking.metrics.performance.value_or(std::vector<std::string>{});
  draft.experiment.memory_metrics = draft.raw.benchmarking.metrics.memory.value_or(std::vector<std::string>{});
  resolve_output(draft);
  resolve_paths(draft);
}

void resolve_loop(Draft& draft) {
  draft.experiment.deterministic = draft.raw.training.general.deterministic;
  resolve_loss_scale(draft);
  resolve_anomalies(draft);
  resolve_evaluation(draft);
  take_expert_setting(draft, draft.raw.training.routing, "training.routing", draft.experiment.routing);
  take_expert_setting(draft, draft.raw.training.dispatcher, "training.dispatcher", draft.experiment.dispatcher);
}

}  // namespace tprimat::suite
