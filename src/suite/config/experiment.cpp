#include "config/experiment.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "config/layout_rules.h"
#include "spec/model_catalogue.h"
#include "text/choice.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

[[noreturn]] void refuse_choice(const std::string& kind, const std::string& chosen,
                                const std::vector<std::string>& choices) {
  throw Error(Problem{
      fmt::format("'{}' is not a {} in this configuration; the choices are {}", chosen, kind, join(choices, ", ")), "",
      suggest_word(chosen, choices)});
}

const ModelEntry& choose_model(const Experiment& experiment, const std::string& name) {
  if (const ModelEntry* entry = experiment.find_model_entry(name)) return *entry;
  std::vector<std::string> choices;
  for (const ModelEntry& entry : experiment.models) choices.push_back(entry.spec.name);
  refuse_choice("model", name, choices);
}

const PlatformSetup& choose_platform(const Experiment& experiment, Platform platform) {
  const auto found = experiment.platforms.find(platform);
  if (found != experiment.platforms.end()) return found->second;
  std::vector<std::string> choices;
  for (const auto& [present, setup] : experiment.platforms) choices.emplace_back(enum_name(present));
  refuse_choice("platform", std::string(enum_name(platform)), choices);
}

const ParallelSpec* find_layout(const Experiment& experiment, Platform platform, const std::string& model,
                                const std::string& strategy) {
  const auto by_model = experiment.strategies.find(strategy);
  if (by_model == experiment.strategies.end()) return nullptr;
  const auto by_platform = by_model->second.find(model);
  if (by_platform == by_model->second.end()) return nullptr;
  const auto layout = by_platform->second.find(platform);
  return layout == by_platform->second.end() ? nullptr : &layout->second;
}

bool is_strategy_name(const Experiment& experiment, const std::string& strategy) {
  return strategy == "single" || strategy == experiment.methodology || experiment.strategies.count(strategy) != 0;
}

ParallelSpec choose_layout(const Experiment& experiment, Platform platform, const std::string& model,
                           const std::string& strategy) {
  const auto unusable = experiment.unusable_layouts.find({strategy, model, platform});
  if (unusable != experiment.unusable_layouts.end()) throw Error(unusable->second);
  if (const ParallelSpec* layout = find_layout(experiment, platform, model, strategy)) return *layout;
  if (experiment.platforms.at(platform).num_devices == 1 && is_strategy_name(experiment, strategy)) {
    ParallelSpec alone;
    alone.strategy = strategy;
    return alone;
  }
  std::vector<std::string> choices;
  for (const auto& [name, by_model] : experiment.strategies)
    if (find_layout(experiment, platform, model, name) != nullptr) choices.push_back(name);
  if (choices.empty() && experiment.platforms.at(platform).num_devices == 1) choices.push_back("single");
  refuse_choice(fmt::format("strategy for {} on {}", model, enum_name(platform)), strategy, choices);
}

CheckpointSpec make_checkpoint_spec(const CheckpointSetup& setup, const std::string& initial_weights) {
  CheckpointSpec spec;
  spec.initial_weights = initial_weights;
  if (!setup.enabled) return spec;
  spec.directory = "checkpoints";
  spec.save_interval = setup.save_interval;
  spec.keep_last_n = setup.keep_last;
  spec.resume = false;
  return spec;
}

// The settings that all models, platforms and strategies share.
void take_training(const Experiment& experiment, TrainSpec& spec) {
  spec.data.split = experiment.data_split;
  spec.optimizer = experiment.optimizer;
  spec.sequence_length = experiment.sequence_length;
  spec.micro_batch_size = experiment.micro_batch_size;
  spec.global_batch_size = experiment.global_batch_size;
  spec.steps = experiment.steps;
  spec.seed = experiment.seed;
  spec.loss_scale = experiment.loss_scale;
  spec.anomalies = experiment.anomalies;
  spec.evaluation = experiment.evaluation;
  if (!spec.model.is_sparse()) return;
  spec.routing = experiment.routing;
  spec.dispatcher = experiment.dispatcher;
}

void require_sound(const TrainSpec& spec, int64_t devices, const std::string& where) {
  const LayoutTask task{spec.model, devices, spec.micro_batch_size, spec.global_batch_size, spec.sequence_length};
  const std::vector<std::string> broken = list_broken_rules(task, spec.parallel);
  if (!broken.empty())
    throw Error(Problem{fmt::format("the layout cannot run: {}", join(broken, "; ")), where,
                        suggest_layout(task, spec.parallel)});
  const std::vector<Problem> problems = check_train_spec(spec, where);
  if (!problems.empty()) throw Error(problems);
}

void take_framework(const FrameworkSetup& setup, TrainSpec& spec) {
  spec.precision = setup.precision.value_or(spec.precision);
  spec.recompute = setup.recompute.value_or(spec.recompute);
  spec.optimizer.moments = setup.moments.value_or(spec.optimizer.moments);
  spec.optimizer.master_weights = setup.master_weights.value_or(spec.optimizer.master_weights);
  if (setup.offload != Offload::none) spec.offload = setup.offload;
}

// All but the layout.
TrainSpec make_work(const Experiment& experiment, Platform platform, const std::string& model,
                    std::optional<Framework> framework) {
  const ModelEntry& entry = choose_model(experiment, model);
  const PlatformSetup& setup = choose_platform(experiment, platform);
  TrainSpec spec;
  spec.model = entry.spec;
  spec.data.dataset = entry.dataset;
  spec.precision = setup.precision;
  spec.recompute = setup.recompute;
  spec.recompute_modules = setup.recompute_modules;
  spec.checkpoint = make_checkpoint_spec(experiment.checkpoints, entry.initial_weights);
  take_training(experiment, spec);
  if (framework) take_framework(experiment.setup_of(*framework), spec);
  if (spec.recompute != Recompute::selective) spec.recompute_modules.reset();
  spec.deterministic = experiment.deterministic;
  spec.deterministic = spec.is_deterministic(platform != Platform::cpu);
  return spec;
}

std::string fill(std::string pattern, std::string_view placeholder, std::string_view value) {
  for (size_t at = pattern.find(placeholder); at != std::string::npos;
       at = pattern.find(placeholder, at + value.size()))
    pattern.replace(at, placeholder.size(), value);
  return pattern;
}

}  // namespace

const FrameworkSetup& Experiment::setup_of(Framework framework) const {
  static const FrameworkSetup nothing;
  const auto found = framework_setups.find(framework);
  return found == framework_setups.end() ? nothing : found->second;
}

const InstallationEntry* FrameworkSetup::find_installation(const std::string& label) const {
  for (const InstallationEntry& entry : installations)
    if (entry.label == label) return &entry;
  return nullptr;
}

std::optional<Problem> find_unknown_installation(const Experiment& experiment, const FrameworkChoice& choice,
                                                 const std::string& where) {
  const FrameworkSetup& setup = experiment.setup_of(choice.framework);
  if (!choice.label || setup.find_installation(*choice.label) != nullptr) return std::nullopt;
  const std::string_view id = enum_name(choice.framework);
  const std::string label = printable(choice.label->substr(0, 64));
  if (setup.installations.empty())
    return Problem{fmt::format("the configuration has no installations of {}, so there is no {}@{}", id, id, label),
                   where,
                   fmt::format("add frameworks.{}.installations: {{{}: FOLDER}}, or leave @{} out", id, label, label)};
  std::vector<std::string> labels;
  for (const InstallationEntry& entry : setup.installations) labels.push_back(entry.label);
  return Problem{fmt::format("{} has no installation '{}'; it has {}", id, label, join(labels, ", ")), where,
                 suggest_word(*choice.label, labels)};
}

const ModelEntry* Experiment::find_model_entry(const std::string& model) const {
  for (const ModelEntry& entry : models)
    if (entry.spec.name == model) return &entry;
  return nullptr;
}

TrainSpec make_train_spec(const Experiment& experiment, Platform platform, const std::string& model,
                          const std::string& strategy, std::optional<Framework> framework) {
  TrainSpec spec = make_work(experiment, platform, model, framework);
  spec.parallel = choose_layout(experiment, platform, model, strategy);
  require_sound(spec, experiment.platforms.at(platform).num_devices,
                fmt::format("strategy {} of {} on {}", strategy, model, enum_name(platform)));
  return spec;
}

TrainSpec make_spec_without_layout(const Experiment& experiment, Platform platform, const std::string& model,
                                   Framework framework) {
  TrainSpec spec = make_work(experiment, platform, model, framework);
  spec.micro_batch_size = 1;
  spec.recompute = Recompute::none;
  spec.parallel.data = experiment.platforms.at(platform).num_devices;
  return spec;
}

std::string fill_file_name(const std::string& pattern, Platform platform, const std::string& software_stack,
                           const std::string& framework, const std::string& model) {
  std::string name = fill(pattern, "{platform}", enum_name(platform));
  name = fill(name, "{software_stack}", software_stack);
  name = fill(name, "{framework}", framework);
  name = fill(name, "{model}", model);
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

KnownModel require_counted(const Experiment& experiment, const std::string& name, const std::string& place) {
  if (const ModelEntry* entry = experiment.find_model_entry(name)) return {entry->spec, {}, {}, {}};
  if (auto counted = find_counted_model(name)) return *counted;
  std::vector<std::string> names;
  for (const ModelEntry& entry : experiment.models) names.push_back(entry.spec.name);
  for (const KnownModel& known : model_catalogue()) names.push_back(known.spec.name);
  for (const KnownModel& counted : counted_models()) names.push_back(counted.spec.name);
  const std::string near = suggest_word(name, names);
  throw Error(Problem{fmt::format("neither the configuration nor the catalogue has a model '{}'", name.substr(0, 64)),
                      place, near.empty() ? "docs/models.md lists the catalogue" : near});
}

}  // namespace tprimat::suite
