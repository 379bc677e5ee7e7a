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
#include "text/json_fields.h"

namespace tprimat::cli {
namespace {

using suite::Experiment;

std::optional<PeakInfo> find_peak(const suite::PlatformSetup& setup, Precision precision) {
  const auto stated = setup.peak_flops_override.find(precision);
  if (stated == setup.peak_flops_override.end()) return catalogue_peak(setup.device_model, precision);
  return stated_peak_info({setup.device_model, precision, stated->second});
}

Json resolve_platform(const suite::PlatformSetup& setup) {
  Json platform{{"device_model", setup.device_model},
                {"num_gpus", setup.num_devices},
                {"framework", enum_name(setup.framework)},
                {"precision", enum_name(setup.precision)}};
  if (setup.usd_per_hour) platform["usd_per_hour"] = *setup.usd_per_hour;
  const auto part = find_hardware(setup.device_model);
  if (const auto watts = setup.tdp_watts ? setup.tdp_watts : part ? part->tdp_watts : std::nullopt)
    platform["tdp_watts"] = *watts;
  std::map<Precision, PeakInfo> peaks;
  for (const auto& [precision, name] : EnumNames<Precision>::values)
    if (const auto peak = find_peak(setup, precision)) peaks[precision] = *peak;
  platform["peaks"] = to_json(peaks);
  return platform;
}

// Nothing where the configuration has no layout for it, or one that cannot run.
std::optional<Json> resolve_training(const Experiment& experiment, const std::string& strategy,
                                     const std::string& model, Platform platform) {
  try {
    RunResult asked;
    fill_asked_facts(asked, suite::make_train_spec(experiment, platform, model, strategy));
    return Json{{"precision", enum_name(*asked.precision)},
                {"num_parameters", *asked.model_info.num_parameters},
                {"training_config", to_json(asked.training_config)},
                {"parallelism_config", to_json(asked.parallelism_config)}};
  } catch (const Error&) {
    return std::nullopt;
  }
}

Json resolve_trainings(const Experiment& experiment) {
  std::set<std::string> strategies{experiment.methodology, "single"};
  for (const auto& [strategy, layouts] : experiment.strategies) strategies.insert(strategy);
  Json trainings = Json::object();
  for (const std::string& strategy : strategies)
    for (const suite::ModelEntry& model : experiment.models)
      for (const auto& [platform, setup] : experiment.platforms)
        if (auto training = resolve_training(experiment, strategy, model.spec.name, platform))
          trainings[strategy][model.spec.name][std::string(enum_name(platform))] = *std::move(training);
  return trainings;
}

Json resolve_files(const Experiment& experiment) {
  Json files = Json::object();
  for (const auto& [platform, setup] : experiment.platforms)
    for (const suite::FrameworkModule& module : suite::framework_modules()) {
      if (!suite::runs_on(module, platform)) continue;
      const std::string framework(enum_name(module.id));
      for (const suite::ModelEntry& model : experiment.models) {
        const auto name = [&, on = platform, &stack = setup.software_stack](const std::string& pattern) {
          return suite::fill_file_name(pattern, on, stack, framework, model.spec.name);
        };
        files[std::string(enum_name(platform))][framework][model.spec.name] =
            Json{{"log", name(experiment.log_filename)}, {"result", name(experiment.result_filename)}};
      }
    }
  return files;
}

Json resolve_primus_configs(const Experiment& experiment) {
  Json configs = Json::object();
  const suite::FrameworkModule& primus = suite::require_framework(Framework::prim, Platform::amd);
  const suite::Checkout checkout = suite::checkout_of(primus, experiment.paths, Platform::amd);
  for (const suite::ModelEntry& model : experiment.models)
    if (model.primus_config) configs[model.spec.name] = suite::primus_config_path(checkout, *model.primus_config);
  return configs;
}

}  // namespace

Json resolve_config(const Experiment& experiment) {
  Json platforms = Json::object();
  for (const auto& [platform, setup] : experiment.platforms)
    platforms[std::string(enum_name(platform))] = resolve_platform(setup);
  return Json{{"platforms", std::move(platforms)},
              {"trainings", resolve_trainings(experiment)},
              {"files", resolve_files(experiment)},
              {"primus_configs", resolve_primus_configs(experiment)}};
}

}  // namespace tprimat::cli
