#include "cli/resolved_config.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>

#include "launch/frameworks.h"
#include "launch/primus.h"
#include "result/peak.h"
#include "result/run_result.h"
#include "spec/hardware_catalogue.h"

namespace tprimat::cli {
namespace {

using suite::Experiment;

std::optional<PeakInfo> find_peak(const suite::PlatformSetup& setup, Precision precision) {
  const auto stated = setup.peak_flops_override.find(precision);
  if (stated == setup.peak_flops_override.end()) return catalogue_peak(setup.device_model, precision);
  return stated_peak_info({setup.device_model, precision, stated->second});
}

document::ResolvedPlatform resolve_platform(const suite::PlatformSetup& setup) {
  document::ResolvedPlatform platform{
      setup.device_model, setup.num_devices, setup.framework, setup.precision, setup.usd_per_hour, setup.tdp_watts, {}};
  if (const auto part = find_hardware(setup.device_model); part && !platform.tdp_watts)
    platform.tdp_watts = part->tdp_watts;
  for (const auto& [precision, name] : EnumNames<Precision>::values)
    if (const auto peak = find_peak(setup, precision)) platform.peaks[precision] = *peak;
  return platform;
}

// Nothing where the configuration has no layout for it, or one that cannot run.
std::optional<document::ResolvedTraining> resolve_training(const Experiment& experiment, const std::string& strategy,
                                                           const std::string& model, Platform platform) {
  try {
    RunResult asked;
    fill_asked_facts(asked, suite::make_train_spec(experiment, platform, model, strategy));
    return document::ResolvedTraining{*asked.precision, *asked.model_info.num_parameters, asked.training_config,
                                      asked.parallelism_config};
  } catch (const Error&) {
    return std::nullopt;
  }
}

document::ByPlatform<document::ResolvedTraining> resolve_model(const Experiment& experiment,
                                                               const std::string& strategy, const std::string& model) {
  document::ByPlatform<document::ResolvedTraining> trainings;
  for (const auto& [platform, setup] : experiment.platforms)
    if (auto training = resolve_training(experiment, strategy, model, platform))
      trainings[platform] = *std::move(training);
  return trainings;
}

auto resolve_trainings(const Experiment& experiment) {
  std::set<std::string> strategies{experiment.methodology, "single"};
  for (const auto& [strategy, layouts] : experiment.strategies) strategies.insert(strategy);
  std::map<std::string, OrderedMap<document::ByPlatform<document::ResolvedTraining>>> trainings;
  for (const std::string& strategy : strategies)
    for (const suite::ModelEntry& model : experiment.models)
      if (auto resolved = resolve_model(experiment, strategy, model.spec.name); !resolved.empty())
        trainings[strategy].add(model.spec.name) = std::move(resolved);
  return trainings;
}

auto resolve_files(const Experiment& experiment) {
  document::ByPlatform<OrderedMap<OrderedMap<document::RunFiles>>> files;
  for (const auto& [platform, setup] : experiment.platforms)
    for (const suite::FrameworkModule& module : suite::framework_modules()) {
      if (!suite::runs_on(module, platform)) continue;
      const std::string framework(enum_name(module.id));
      OrderedMap<document::RunFiles>& of_framework = files[platform].add(framework);
      for (const suite::ModelEntry& model : experiment.models) {
        const auto name = [&, on = platform, &stack = setup.software_stack](const std::string& pattern) {
          return suite::fill_file_name(pattern, on, stack, framework, model.spec.name);
        };
        of_framework.add(model.spec.name) = {name(experiment.log_filename), name(experiment.result_filename)};
      }
    }
  return files;
}

OrderedMap<std::string> resolve_primus_configs(const Experiment& experiment) {
  OrderedMap<std::string> configs;
  const suite::FrameworkModule& primus = suite::require_framework(Framework::prim, Platform::amd);
  const suite::Checkout checkout = suite::checkout_of(primus, experiment.paths, Platform::amd);
  for (const suite::ModelEntry& model : experiment.models)
    if (model.primus_config) configs.add(model.spec.name) = suite::primus_config_path(checkout, *model.primus_config);
  return configs;
}

}  // namespace

document::ResolvedConfig resolve_config(const Experiment& experiment) {
  document::ResolvedConfig resolved{
      {}, resolve_trainings(experiment), resolve_files(experiment), resolve_primus_configs(experiment)};
  for (const auto& [platform, setup] : experiment.platforms) resolved.platforms[platform] = resolve_platform(setup);
  return resolved;
}

}  // namespace tprimat::cli
