#include "run/configured_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/values.h"
#include "launch/frameworks.h"
#include "result/summary.h"
#include "spec/hardware_catalogue.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

template <class T>
std::string show(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return std::string(enum_name(value));
  else
    return fmt::format("{}", value);
}

class FactCollection {
 public:
  FactCollection(const LoadedExperiment& configuration, const RunResult& result, const NamedFacts& named,
                 const logs::KnownFacts& given)
      : configuration_(configuration), result_(result), named_(named) {
    facts_.known = given;
  }

  ConfiguredFacts collect(const ModelBelief& belief) {
    take_names();
    if (belief.entry == nullptr) {
      if (!is_built_in(configuration_))
        warn(fmt::format("nothing is taken from {}: {}", configuration_.origin.place, belief.because));
      return std::move(facts_);
    }
    take_model(belief);
    if (is_built_in(configuration_)) return std::move(facts_);
    take_platform();
    take_work();
    if (platform_) take_devices(configuration_.experiment.platforms.at(*platform_));
    return std::move(facts_);
  }

 private:
  void warn(std::string sentence) { facts_.warnings.push_back(std::move(sentence)); }

  // The framework and the platform in the log's name or folder.
  void take_names() {
    if (named_.framework && !facts_.known.framework) {
      facts_.known.framework = named_.framework;
      facts_.known.framework_from = named_.framework_from;
    }
    const auto framework = effective_framework();
    platform_ = result_.platform;
    if (!platform_ && framework == Framework::prim) platform_ = Platform::amd;  // as make_result concludes
    if (platform_ && named_.platform && platform_ != named_.platform)
      warn(fmt::format("the log's path names the platform {}, but the log is of {}", enum_name(*named_.platform),
                       enum_name(*platform_)));
    if (platform_ || !named_.platform) return;
    platform_ = facts_.known.platform = named_.platform;
    assume("platform", show(*platform_), named_.platform_from);
  }

  // That of the name or of an option, where the log leaves it open.
  std::optional<Framework> effective_framework() const {
    constexpr double k_certain = 0.9;
    const auto& known = facts_.known.framework;
    if (!known || !result_.framework) return known ? known : result_.framework;
    const bool is_open =
        logs::starts_trainer_of(*known, *result_.framework) || result_.source.confidence.value_or(1.0) < k_certain;
    return is_open ? known : result_.framework;
  }

  void take_model(const ModelBelief& belief) {
    const ModelSpec& spec = belief.entry->spec;
    (is_built_in(configuration_) ? facts_.family : facts_.known.model) = spec.name;
    if (!belief.is_logged) assume("model_info.name", spec.name, belief.from);
    if (is_built_in(configuration_)) return;
    facts_.known.shape = spec;
    if (!result_.model_info.shape)
      assume("model_info.shape", spec.full_name.empty() ? spec.name : spec.full_name, configuration_.origin.place,
             "models." + spec.name);
  }

  // By the framework that the configuration runs there, or as its only platform.
  void take_platform() {
    if (platform_ && configuration_.experiment.platforms.count(*platform_) == 0) {
      warn(fmt::format("{} has no platform {}: no device and no price are taken from it", configuration_.origin.place,
                       enum_name(*platform_)));
      return platform_.reset();
    }
    if (platform_ || result_.platform) return;
    const auto framework = effective_framework();
    std::vector<Platform> fitting;
    for (const auto& [platform, setup] : configuration_.experiment.platforms)
      if (setup.framework == framework || configuration_.experiment.platforms.size() == 1) fitting.push_back(platform);
    if (fitting.size() != 1)
      return warn(
          fmt::format("the log does not state its platform: no device and no price are taken from {}; "
                      "--platform states it",
                      configuration_.origin.place));
    const std::string key = fmt::format("hardware.platforms.{}", enum_name(fitting.front()));
    const std::string from = source_of(key + ".framework").value_or(source_of(key + ".num_gpus").value_or(""));
    if (from.empty()) return;
    platform_ = facts_.known.platform = fitting.front();
    assume("platform", show(*platform_), from, key + ".framework");
  }

  void take_work() {
    const Experiment& experiment = configuration_.experiment;
    take({"training_config.sequence_length", "sequence length", "training.data.seq_length"},
         result_.training_config.sequence_length, experiment.sequence_length, facts_.known.sequence_length);
    take({"training_config.global_batch_size", "global batch size", "training.data.global_batch_size"},
         result_.training_config.global_batch_size, experiment.global_batch_size, facts_.known.global_batch_size,
         why_not_batch(experiment.global_batch_size));
  }

  // In floating point: a log may state any number.
  std::string why_not_batch(int64_t batch) const {
    const int64_t micro = result_.training_config.micro_batch_size.value_or(1);
    const int64_t replicas = result_.parallelism_config.data_parallel_size.value_or(1);
    const double per_pass = static_cast<double>(micro) * static_cast<double>(replicas);
    if (per_pass > 0 && std::fmod(static_cast<double>(batch), per_pass) != 0)
      return fmt::format("the log states MBS {} and DP {}", micro, replicas);
    const auto& tokens = result_.training_config.tokens_per_step;
    const auto length =
        facts_.known.sequence_length ? facts_.known.sequence_length : result_.training_config.sequence_length;
    const double product = static_cast<double>(batch) * static_cast<double>(length.value_or(0));
    if (tokens && length && static_cast<double>(*tokens) != product)
      return fmt::format("the log states {} tokens per step", *tokens);
    return "";
  }

  void take_devices(const PlatformSetup& setup) {
    const std::string key = fmt::format("hardware.platforms.{}.", enum_name(*platform_));
    take({"training_config.num_gpus", "number of devices", key + "num_gpus"}, device_count(result_), setup.num_devices,
         facts_.known.devices, why_not_devices(setup.num_devices));
    const std::string& logged = result_.gpu_info.device_name;
    const bool is_priced = take_device(setup, key + "gpu_model", logged);
    take_precision(setup);
    if (is_priced) take_price(setup);
  }

  std::string why_not_devices(int64_t devices) const {
    const ParallelismConfig& layout = result_.parallelism_config;
    const double shared = size(layout.tensor_model_parallel_size) * size(layout.pipeline_model_parallel_size) *
                          size(layout.context_parallel_size);
    const double ranks = shared * size(layout.data_parallel_size), count = static_cast<double>(devices);
    if (const auto replicas = replicas_of_batch(); replicas && !layout.data_parallel_size)
      return *replicas * shared == count ? "" : describe_batch(*replicas * shared);
    const bool is_whole = !layout.data_parallel_size && shared > 0 && std::fmod(count, shared) == 0;
    return is_whole || ranks == count ? "" : fmt::format("the layout that the log states has {:g} ranks", ranks);
  }

  static double size(const std::optional<int64_t>& ranks) { return static_cast<double>(ranks.value_or(1)); }

  std::optional<int64_t> global_batch() const {
    const auto& known = facts_.known.global_batch_size;
    return known ? known : result_.training_config.global_batch_size;
  }

  // Those that share the global batch: GBS / (MBS x GA).
  std::optional<double> replicas_of_batch() const {
    const auto& micro = result_.training_config.micro_batch_size;
    const auto& passes = result_.parallelism_config.gradient_accumulation_steps;
    const double per_replica = size(micro) * size(passes);
    if (!global_batch() || !micro || !passes || !(per_replica > 0)) return std::nullopt;
    return size(global_batch()) / per_replica;
  }

  std::string describe_batch(double ranks) const {
    return fmt::format("GBS {}, MBS {} and GA {} are those of {:g} ranks; --devices states how many there were",
                       *global_batch(), *result_.training_config.micro_batch_size,
                       *result_.parallelism_config.gradient_accumulation_steps, ranks);
  }

  // Whether the configuration's prices are of the log's device.
  bool take_device(const PlatformSetup& setup, const std::string& key, const std::string& logged) {
    if (setup.device_model == "auto") return logged.empty() || *platform_ == Platform::cpu;
    if (logged.empty()) {
      const auto from = source_of(key);
      if (from)
        facts_.known.device = setup.device_model, assume("gpu_info.device_name", setup.device_model, *from, key);
      return true;
    }
    if (is_same_device(logged, setup.device_model)) return true;
    warn(fmt::format("the device of the log is {}, but {} has {} {}: the log's device is used, without a price", logged,
                     configuration_.origin.place, key, setup.device_model));
    return false;
  }

  void take_precision(const PlatformSetup& setup) {
    const auto framework = effective_framework();
    const auto own = framework ? configuration_.experiment.setup_of(*framework).precision : std::nullopt;
    std::string key = fmt::format("platform_optimizations.{}.precision", enum_name(*platform_));
    if (own) key = fmt::format("frameworks.{}.precision", enum_name(*framework));
    if (!source_of(key)) key = "training.precision.default";
    const Precision precision = own.value_or(setup.precision);
    take({"precision", "precision", key}, result_.precision, precision, facts_.known.precision,
         framework ? why_not_precision(*framework, precision) : "");
  }

  // A key of the platform counts for each of its frameworks, also for one that `run` would refuse with it.
  std::string why_not_precision(Framework framework, Precision precision) const {
    const FrameworkModule* module = find_framework(framework);
    if (module == nullptr || module->trains_in == nullptr || module->trains_in(precision, *platform_)) return "";
    return fmt::format("{} does not train in it; --precision states that of the run", module->long_name);
  }

  // The price of all devices of the run, which may be others than those of the configuration.
  void take_price(const PlatformSetup& setup) {
    const std::string key = "benchmarking.enhanced_metrics.cloud_costs";
    const YamlNode* prices = find_path(configuration_.settings, key);
    const auto devices = facts_.known.devices ? facts_.known.devices : device_count(result_);
    if (!setup.usd_per_hour || prices == nullptr || prices->entries.empty() || !devices) return;
    const double usd = *setup.usd_per_hour * static_cast<double>(*devices) / static_cast<double>(setup.num_devices);
    const auto from = source_of(key + "." + prices->entries.front().key);
    if (!from) return;
    facts_.known.usd_per_hour = usd;
    assume("derived.usd_per_hour", fmt::format("{:.6g}", usd), *from, key);
  }

  struct Fact {
    const char *key, *name;
    std::string setting;
  };

  // `logged` holds the options' facts too.
  template <class T>
  void take(const Fact& fact, const std::optional<T>& logged, const T& configured, std::optional<T>& known,
            const std::string& why_not = "") {
    const auto from = source_of(fact.setting);
    if (!from) return;
    if (logged && *logged != configured && !known)
      return warn(fmt::format("the {} of the log is {}, but {} has {} {}: the log's is used", fact.name, show(*logged),
                              *from, fact.setting, show(configured)));
    if (logged) return;
    if (!why_not.empty())
      return warn(fmt::format("the {} {} of {} ({}) is not used: {}", fact.name, show(configured), *from, fact.setting,
                              why_not));
    known = configured;
    assume(fact.key, show(configured), *from, fact.setting);
  }

  void assume(const std::string& key, const std::string& value, const std::string& from,
              const std::optional<std::string>& setting = {}) {
    facts_.known.assumed.push_back({key, value, from, setting});
  }

  // Who states the value of a key: "config.yaml", "environment TRAIN_ITERS", "--set ..."; nothing for a default.
  std::optional<std::string> source_of(const std::string& path) const {
    const YamlNode* node = find_path(configuration_.settings, path);
    if (node == nullptr) return std::nullopt;
    switch (node->origin.provenance) {
      case Provenance::environment:
      case Provenance::option: return node->origin.text();
      case Provenance::file: return configuration_.origin.place;
      default: return std::nullopt;
    }
  }

  const LoadedExperiment& configuration_;
  const RunResult& result_;
  const NamedFacts& named_;
  std::optional<Platform> platform_;
  ConfiguredFacts facts_;
};

}  // namespace

ConfiguredFacts add_configured_facts(const LoadedExperiment& configuration, const RunResult& result,
                                     const ModelBelief& belief, const NamedFacts& named,
                                     const logs::KnownFacts& given) {
  return FactCollection(configuration, result, named, given).collect(belief);
}

}  // namespace tprimat::suite
