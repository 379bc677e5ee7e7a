#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "config/framework_choice.h"
#include "spec/launcher_settings.h"
#include "spec/model_catalogue.h"
#include "spec/train_spec.h"

namespace tprimat::suite {

// One entry under `models:`.
struct ModelEntry {
  ModelSpec spec;                     // complete: missing values come from the model catalogue
  std::string given_name;             // models.<key>.name: "llama3.1_8b"; the key when absent
  std::string dataset = "synthetic";  // or the prefix of a Megatron .bin/.idx pair
  std::string initial_weights;        // folder of a Hugging Face model; empty: random weights
  std::optional<std::string> tokenizer_path, nemo_recipe, primus_config;
};

// Where the peaks behind MFU come from: the hardware catalogue, with the configuration's for devices that it lacks, or
// the configuration's first.
enum class PeakOrigin { catalogue, mine };

// One entry under `hardware.platforms:`, with that platform's settings from the other sections.
struct PlatformSetup {
  std::string device_model;  // "H100", "MI300X", "auto" on cpu
  int64_t num_devices = 1;
  std::optional<double> memory_per_device_gb;
  std::string software_stack;
  Framework framework = Framework::native;  // default framework of the platform
  Precision precision = Precision::bf16;
  std::optional<double> usd_per_hour;               // of all devices together
  std::map<Precision, double> peak_flops_override;  // of hardware_specs, without those that the catalogue replaces
  PeakOrigin peak_origin = PeakOrigin::catalogue;
  std::optional<double> tdp_watts;
  Recompute recompute = Recompute::none;
  std::optional<std::vector<RecomputedModule>> recompute_modules;  // of selective
  bool activation_checkpointing = false;                           // recompute is not none
  PlatformSettings settings;
};

// What a training on processors whose configuration leaves the number of ranks open may use: one rank per memory domain
// (NUMA node), where the replicas take at most half of the memory.
struct OpenRanks {
  int64_t domains = 1;
  double memory_bytes = 0;
};

// How a framework gets a training that it does not support as asked: not at all, or with the closest settings it
// supports.
enum class Adapt { strict, nearest };

// One entry under `frameworks.<id>.installations:`: a folder of this machine, or an image and maybe a folder in it.
struct InstallationEntry {
  std::string label, folder, image, python;
};

// One entry under `frameworks:`. What is not stated is that of the platform or of the training.
struct FrameworkSetup {
  std::string description;
  bool enabled = true;
  std::optional<std::string> strategy;
  std::optional<Precision> precision;
  std::optional<Recompute> recompute;
  std::optional<MomentFormat> moments;
  std::optional<bool> master_weights;
  std::optional<Offload> offload;
  std::vector<std::string> arguments;            // of its program, passed on as they are
  std::vector<InstallationEntry> installations;  // in the order of the file

  const InstallationEntry* find_installation(const std::string& label) const;  // nullptr when there is no such label
};

struct CheckpointSetup {
  bool enabled = false;
  int64_t save_interval = 1000;  // steps
  int64_t keep_last = 2;
};

// A validated configuration. Made once by load_experiment, then passed as const.
struct Experiment {
  std::string name, description, version;
  std::string methodology;  // default strategy
  bool profiling = false, logging = true;
  int64_t profile_steps = 0;       // trained under a profiler after the measured ones of each run
  std::vector<ModelEntry> models;  // in the order of the file
  std::map<Platform, PlatformSetup> platforms;
  PeakOrigin peak_origin = PeakOrigin::catalogue;  // also in each platform
  std::vector<FrameworkChoice> frameworks;         // experiment.frameworks or FRAMEWORKS; empty: each platform's own
  bool all_frameworks = false;                     // every one that runs on the platform instead
  Adapt adapt = Adapt::strict;
  std::map<Framework, FrameworkSetup> framework_setups;
  // strategy -> model -> platform -> layout
  std::map<std::string, std::map<std::string, std::map<Platform, ParallelSpec>>> strategies;

  // strategy, model, platform -> why that layout cannot run; it is refused when it is asked for
  std::map<std::tuple<std::string, std::string, Platform>, Problem> unusable_layouts;

  LauncherSettings launch;
  OptimizerSpec optimizer;
  LossScaleSpec loss_scale;
  AnomalySpec anomalies;
  std::optional<Routing> routing;        // of the sparse models
  std::optional<Dispatcher> dispatcher;  // of the sparse models
  EvaluationSpec evaluation;
  std::string data_split = DataSpec().split;
  int64_t seed = 42;
  std::optional<bool> deterministic;  // unstated: as TrainSpec says
  int64_t micro_batch_size = 1, global_batch_size = 1, sequence_length = 0, steps = 0;
  int64_t runs = 1;
  double cool_down_seconds = 0;
  std::optional<int64_t> fixed_warmup_steps;  // nothing: detect
  CheckpointSetup checkpoints;
  std::vector<std::string> performance_metrics,
      memory_metrics;  // figures to show first, by the names in the result file

  std::string planner_parameters;  // file of the planner's parameters; empty: the built-in ones
  std::string output_directory = "./output";
  std::string result_filename = "train_{platform}_{framework}_{model}.json";
  std::string log_filename = "training_{framework}_{model}.log";
  std::map<std::string, std::string> paths;  // "primus.installation" -> expanded path

  const ModelEntry* find_model_entry(const std::string& name) const;  // nullptr when the config has no such model
  const FrameworkSetup& setup_of(Framework framework) const;          // one that states nothing where there is none
};

// The training of one model on one platform under one strategy. Throws Error for an unknown model, platform or
// strategy, with the choices, and for a layout that cannot run, with the broken rule and a layout that passes. A
// single-device platform needs no entry under `strategies`. Where checkpoints are enabled, checkpoint.directory is
// "checkpoints", relative to the run's own folder, which only the launcher knows; a run of the suite is a measurement,
// so it starts from the first step (checkpoint.resume is false). With a framework, what its section states replaces the
// platform's and the training's; its strategy is the caller's to choose.
TrainSpec make_train_spec(const Experiment& experiment, Platform platform, const std::string& model,
                          const std::string& strategy, std::optional<Framework> framework = {});

// The same where the layout is still to be found: every device is data-parallel and takes one sequence at a time,
// whether or not the batch can be split that way.
TrainSpec make_spec_without_layout(const Experiment& experiment, Platform platform, const std::string& model,
                                   Framework framework);

// The name that a pattern such as result_filename stands for, without a suffix for a strategy or a run: "{framework}"
// may be labelled ("mega@new").
std::string fill_file_name(const std::string& pattern, Platform platform, const std::string& software_stack,
                           const std::string& framework, const std::string& model);

// Why a choice names none of the framework's installations; nothing if it names one, or leaves it to `paths`.
std::optional<Problem> find_unknown_installation(const Experiment& experiment, const FrameworkChoice& choice,
                                                 const std::string& where);

// A model of the configuration, else of the catalogues. Throws Error at `place` for others.
KnownModel require_counted(const Experiment& experiment, const std::string& name, const std::string& place);

}  // namespace tprimat::suite
