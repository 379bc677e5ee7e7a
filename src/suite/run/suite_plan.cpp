#include "run/suite_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>

#include "launch/launchers.h"
#include "launch/loaded_checkpoint.h"
#include "launch/profilers.h"
#include "run/adapt.h"
#include "run/chosen_framework.h"
#include "run/forecast.h"
#include "run/profiled_steps.h"
#include "run/required_files.h"
#include "text/choice.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

class SuitePlanner {
 public:
  SuitePlanner(const Experiment& experiment, const SuiteRequest& request, const MachineFacts& machine)
      : experiment_(experiment), request_(request), machine_(machine) {}

  SuitePlan plan() {
    refuse_repeated(request_.models, "--model");
    refuse_repeated(request_.strategies, "--strategy");
    refuse_repeated(names_of_frameworks(), "--framework");
    platform_ = choose_platform();
    if (request_.presence == Presence::installed) require_launcher(experiment_.launch);
    choose_models();
    strategies_ = request_.strategies.empty() ? std::vector{experiment_.methodology} : request_.strategies;
    claimed_ = {{(output_folder() / "runs").string(), "the folder of step records"}};
    SuitePlan suite;
    const std::vector<ChosenFramework> frameworks = choose_frameworks(suite);
    frameworks_ = frameworks.size();
    for (const std::string& model : models_)
      for (const std::string& strategy : strategies_) add_in_turn(suite, frameworks, model, strategy);
    if (suite.runs.empty()) throw Error(suite.unavailable, refused_with_);
    return suite;
  }

 private:
  std::vector<std::string> names_of_frameworks() const {
    std::vector<std::string> names;
    for (const FrameworkChoice& each : request_.frameworks) names.push_back(each.name());
    return names;
  }

  static void refuse_repeated(const std::vector<std::string>& names, const std::string& option) {
    for (auto name = names.begin(); name != names.end(); ++name)
      if (std::find(names.begin(), name, *name) != name)
        throw Error(Problem{fmt::format("'{}' is named twice", *name), option, "name it once; --runs N repeats it"});
  }

  std::vector<FrameworkChoice> frameworks_asked(Platform platform) const {
    if (!request_.frameworks.empty()) return request_.frameworks;
    if (asks_for_all()) return enabled(all_on(platform));
    if (!experiment_.frameworks.empty()) return enabled(experiment_.frameworks);
    return {experiment_.platforms.at(platform).framework};
  }

  bool asks_for_all() const {
    return request_.all_frameworks || (request_.frameworks.empty() && experiment_.all_frameworks);
  }

  static std::vector<FrameworkChoice> all_on(Platform platform) {
    std::vector<FrameworkChoice> all;
    for (const FrameworkModule& module : framework_modules())
      if (runs_on(module, platform)) all.emplace_back(module.id);
    return all;
  }

  std::vector<FrameworkChoice> enabled(std::vector<FrameworkChoice> frameworks) const {
    std::erase_if(frameworks,
                  [&](const FrameworkChoice& each) { return !experiment_.setup_of(each.framework).enabled; });
    return frameworks;
  }

  bool can_run_something(Platform platform) const {
    if (!experiment_.platforms.contains(platform)) return false;
    return std::ranges::any_of(frameworks_asked(platform), [&](const FrameworkChoice& choice) {
      const FrameworkModule* module = find_framework(choice.framework);
      return module != nullptr && runs_on(*module, platform);
    });
  }

  // On a machine with GPUs, trainers for processors can be requested, too.
  Platform choose_platform() const {
    if (request_.platform) return configured(*request_.platform, "--platform");
    for (const Platform platform : {machine_.platform, Platform::cpu})
      if (can_run_something(platform)) return platform;
    if (request_.presence == Presence::any)  // shown, not run: this machine need not have the GPUs
      for (const auto& [platform, setup] : experiment_.platforms)
        if (can_run_something(platform)) return platform;
    return configured(machine_.platform, k_automatic_platform);
  }

  Platform configured(Platform platform, const std::string& where) const {
    if (experiment_.platforms.contains(platform)) return platform;
    std::string known;
    for (const auto& [each, setup] : experiment_.platforms)
      known += (known.empty() ? "" : ", ") + std::string(enum_name(each));
    throw Error(Problem{fmt::format("the configuration has no platform {}; it has {}", enum_name(platform), known),
                        where,
                        fmt::format("add hardware.platforms.{}, or name another platform", enum_name(platform))});
  }

  void choose_models() {
    models_ = request_.models;
    if (models_.empty())
      for (const ModelEntry& entry : experiment_.models) models_.push_back(entry.spec.name);
    for (const std::string& model : models_) check_model_is_known(model);
  }

  void check_model_is_known(const std::string& model) const {
    if (experiment_.find_model_entry(model) != nullptr) return;
    std::vector<std::string> names;
    for (const ModelEntry& entry : experiment_.models) names.push_back(entry.spec.name);
    throw Error(Problem{fmt::format("the configuration has no model '{}'; it has {}", model, join(names, ", ")),
                        "--model", suggest_word_or(model, names, "choose one of these, or add it under models:")});
  }

  // A label that does not exist, or that the launcher cannot start, is a fault of the request: nothing runs then.
  void require_installations() const {
    const std::string where = request_.frameworks.empty() ? "experiment.frameworks" : "--framework";
    for (const FrameworkChoice& choice : frameworks_asked(platform_))
      if (const FrameworkModule* module = find_framework(choice.framework))
        choose_installation(experiment_, *module, choice, platform_, where);
  }

  std::vector<ChosenFramework> choose_frameworks(SuitePlan& suite) const {
    require_installations();
    std::vector<ChosenFramework> frameworks;
    ExitStatus refused = ExitStatus::missing_component;
    for (const FrameworkChoice& choice : frameworks_asked(platform_)) {
      try {
        const FrameworkModule& module = require_framework(choice.framework, platform_);
        ChosenFramework chosen = choose_installation(experiment_, module, choice, platform_, "");
        if (request_.presence == Presence::installed) chosen.require_installed(platform_);
        if (request_.profile) require_profiler_of(module);
        frameworks.push_back(std::move(chosen));
      } catch (const Error& error) {
        const bool skips = asks_for_all() && error.status() == ExitStatus::missing_component;
        std::vector<Problem>& list = skips ? suite.skipped : suite.unavailable;
        list.insert(list.end(), error.problems().begin(), error.problems().end());
        if (error.status() == ExitStatus::usage) refused = ExitStatus::usage;  // an unsuitable profiler
      }
    }
    std::vector<Problem> reasons = suite.unavailable;
    reasons.insert(reasons.end(), suite.skipped.begin(), suite.skipped.end());
    if (frameworks.empty() && reasons.empty())
      throw Error(Problem{"every framework is switched off", "frameworks", "set enabled: true for one of them"});
    if (frameworks.empty()) throw Error(reasons, refused);
    return frameworks;
  }

  void require_profiler_of(const FrameworkModule& module) const {
    const Profiler profiler = choose_profiler(module, platform_, request_.profile->profiler);
    if (request_.presence == Presence::installed) require_profiler(profiler_module(profiler));
  }

  ModelNotes notes_of(const std::string& model) const {
    const ModelEntry& entry = *experiment_.find_model_entry(model);
    return {entry.tokenizer_path.value_or(""), entry.nemo_recipe.value_or(""), entry.primus_config.value_or("")};
  }

  LaunchRequest request_of(const ChosenFramework& chosen, const PlannedRun& run) const {
    return {run.spec,
            run.platform,
            run.setup.settings,
            notes_of(run.spec.model.name),
            chosen.checkout,
            paths_of(run),
            request_.own_program,
            chosen.launch,
            run.profile,
            experiment_.setup_of(chosen.module->id).arguments,
            request_.program_files};
  }

  // Frameworks alternate (A B C A B C), so that a machine that gets warm or busy slows all of them alike.
  void add_in_turn(SuitePlan& suite, const std::vector<ChosenFramework>& frameworks, const std::string& model,
                   const std::string& strategy) {
    SuitePlan all;
    for (const ChosenFramework& chosen : frameworks)
      for (const TrainSpec& spec : list_specs(all, chosen, model, strategy)) add_runs(all, chosen, spec);
    add_each_once(suite.unavailable, all.unavailable);
    std::stable_sort(all.runs.begin(), all.runs.end(),
                     [](const PlannedRun& a, const PlannedRun& b) { return a.run < b.run; });
    std::move(all.runs.begin(), all.runs.end(), std::back_inserter(suite.runs));
  }

  // Two installations of one framework refuse the same.
  static void add_each_once(std::vector<Problem>& list, const std::vector<Problem>& more) {
    for (auto problem = more.begin(); problem != more.end(); ++problem) {
      const auto same = [&](const Problem& each) { return each.what == problem->what && each.where == problem->where; };
      if (std::none_of(more.begin(), problem, same)) list.push_back(*problem);
    }
  }

  std::vector<TrainSpec> list_specs(SuitePlan& suite, const ChosenFramework& chosen, const std::string& model,
                                    const std::string& strategy) {
    if (!request_.choose_layouts) return {make_spec(chosen.module->id, model, strategy)};
    const TrainSpec spec = make_spec_without_layout(experiment_, platform_, model, chosen.module->id);
    PlannedRun training = without_launch(chosen, complete(spec), 1);
    training.request = request_of(chosen, training);
    try {
      return request_.choose_layouts(training);
    } catch (const Error& error) {
      refuse(suite, error);
      return {};
    }
  }

  // The others still run.
  void refuse(SuitePlan& suite, const Error& error) {
    suite.unavailable.insert(suite.unavailable.end(), error.problems().begin(), error.problems().end());
    refused_with_ = error.status();
  }

  void add_runs(SuitePlan& suite, const ChosenFramework& chosen, const TrainSpec& spec) {
    const FrameworkModule& module = *chosen.module;
    for (int64_t run = 1; run <= runs_of_each(); ++run) {
      PlannedRun planned = without_launch(chosen, spec, run);
      if (request_.profile) make_profiled(planned, module);
      try {
        if (request_.load && !request_.profile) choose_checkpoint(module, *request_.load, planned.spec);
        planned.request = request_of(chosen, planned);
        const std::vector<Deviation> adapted = adapt(planned);
        if (!request_.profile) plan_profiled_steps(planned, experiment_.profile_steps);
        planned.plan = plan_launch(module, planned.request);
        planned.plan.deviations.insert(planned.plan.deviations.begin(), adapted.begin(), adapted.end());
        state_launch(planned);
      } catch (const Error& error) {
        return refuse(suite, error);
      }
      claim_outputs(planned);
      suite.runs.push_back(std::move(planned));
    }
  }

  // Replaces a request that the framework refuses or that does not fit by the nearest one, where that is asked for.
  std::vector<Deviation> adapt(PlannedRun& planned) const {
    if (experiment_.adapt == Adapt::strict) return {};
    auto nearest = find_nearest_request(planned, machine_, request_.planner);
    if (!nearest) return {};
    planned.request = std::move(nearest->request);
    planned.spec = planned.request.spec;
    planned.setup.settings = planned.request.settings;
    return std::move(nearest->differences);
  }

  PlannedRun without_launch(const ChosenFramework& chosen, const TrainSpec& spec, int64_t run) const {
    const FrameworkModule& module = *chosen.module;
    PlannedRun planned;
    planned.platform = platform_;
    planned.setup = experiment_.platforms.at(platform_);
    planned.framework = module.id;
    planned.launch_facts.installation = chosen.installation;
    if (chosen.installation) planned.installation = chosen.installation->label;
    if (const auto installed = chosen.find_installed()) planned.framework_version = installed->version;
    planned.spec = spec;
    planned.run = run;
    planned.runs = runs_of_each();
    return planned;
  }

  void state_launch(PlannedRun& planned) const {
    LaunchFacts& facts = planned.launch_facts;
    facts.framework = planned.framework;
    facts.platform = platform_;
    facts.settings = planned.setup.settings;
    facts.launcher = experiment_.launch.launcher;
    facts.nodes = experiment_.launch.nodes;
    facts.checkpoint_directory = planned.spec.checkpoint.directory;
    if (!planned.request.arguments.empty()) facts.arguments = planned.request.arguments;
    facts.fixed_warmup_steps = experiment_.fixed_warmup_steps;
    facts.usd_per_hour = planned.setup.usd_per_hour;
    planned.config_hash = hash_config(planned.spec, facts);
  }

  int64_t runs_of_each() const { return request_.profile ? 1 : experiment_.runs; }

  void make_profiled(PlannedRun& planned, const FrameworkModule& module) const {
    const StepRange window = choose_window(*request_.profile, planned.spec.steps, experiment_.fixed_warmup_steps);
    planned.spec = shorten_to(window, std::move(planned.spec));
    const bool several = frameworks_asked(platform_).size() > 1 || planned.installation;
    std::string name = profile_name(platform_, planned.spec, several ? std::optional(module.id) : std::nullopt);
    if (planned.installation) name += "@" + *planned.installation;
    const Profiler profiler = choose_profiler(module, platform_, request_.profile->profiler);
    const bool whole = !marks_steps(module, profiler);
    const StepRange recorded = whole ? StepRange{1, planned.spec.steps} : window;
    planned.profile = ProfileWindow{profiler, recorded.first, recorded.last, (output_folder() / name).string(), whole};
  }

  fs::path output_folder() const { return fs::absolute(experiment_.output_directory).lexically_normal(); }

  // A framework's own strategy, unless --strategy names others.
  TrainSpec make_spec(Framework framework, const std::string& model, const std::string& strategy) const {
    const auto& own = experiment_.setup_of(framework).strategy;
    const std::string& chosen = own && request_.strategies.empty() ? *own : strategy;
    return complete(make_train_spec(experiment_, platform_, model, chosen, framework));
  }

  TrainSpec complete(TrainSpec spec) const {
    if (request_.dataset) spec.data.dataset = *request_.dataset;
    const bool is_here = experiment_.launch.launcher != Launcher::kubernetes;  // else its volumes have the files
    if (is_here) require_initial_weights(spec.checkpoint.initial_weights, spec.model.name);
    if (is_here && request_.presence == Presence::installed)
      require_dataset(spec.data,
                      request_.dataset ? "--dataset" : fmt::format("models.{}.dataset_path", spec.model.name));
    if (platform_ == Platform::cpu && spec.threads == 0)
      spec.threads = threads_of_rank(experiment_.launch, spec.parallel.ranks(), machine_.cpu);
    return spec;
  }

  // "train_cpu_native_gpt.json" -> "train_cpu_native_gpt_<strategy>_r<k>.json"; parts without alternatives are omitted.
  // Where the pattern lacks {framework} and several run, each is named.
  std::string file_name(const std::string& pattern, const PlannedRun& run) const {
    const std::string name =
        fill_file_name(pattern, run.platform, run.setup.software_stack, name_framework(run), run.spec.model.name);
    std::string suffix;
    if (frameworks_ > 1 && pattern.find("{framework}") == std::string::npos) suffix += "_" + name_framework(run);
    if (strategies_.size() > 1 || request_.choose_layouts) suffix += "_" + run.spec.parallel.strategy;
    if (run.runs > 1) suffix += fmt::format("_r{}", run.run);
    const fs::path path(name);
    return path.stem().string() + suffix + path.extension().string();
  }

  RunPaths paths_of(const PlannedRun& run) const {
    const fs::path output = output_folder();
    if (run.profile) {  // the log lies with the generated files, so that log readers do not take it for a measurement
      const fs::path folder = output / "runs" / fs::path(run.profile->trace).filename();
      return {folder.string(), (folder / "training.log").string(), run.profile->trace + "_summary.json",
              fs::current_path().string()};
    }
    const std::string result = file_name(experiment_.result_filename, run);
    return {(output / "runs" / fs::path(result).stem()).string(),
            (output / file_name(experiment_.log_filename, run)).string(), (output / result).string(),
            fs::current_path().string()};
  }

  // A later file would overwrite an earlier one of the same name.
  void claim_outputs(const PlannedRun& run) {
    claim(run.plan.result_path, "the result of " + describe(run), "benchmarking.output.filename_format");
    claim(run.plan.log_path, "the log of " + describe(run), "benchmarking.output.log_format");
  }

  void claim(const std::string& path, const std::string& owner, const std::string& key) {
    const auto [claimed, is_new] = claimed_.try_emplace(path, owner);
    if (is_new) return;
    throw Error(Problem{fmt::format("{} and {} would share the file {}", claimed->second, owner, path), key,
                        "use {platform}, {framework} and {model} in it, so that each output has its own name"});
  }

  const Experiment& experiment_;
  const SuiteRequest& request_;
  const MachineFacts& machine_;
  size_t frameworks_ = 0;
  Platform platform_ = Platform::cpu;
  std::vector<std::string> models_, strategies_;
  std::map<std::string, std::string> claimed_;   // path -> description of its owner
  ExitStatus refused_with_ = ExitStatus::usage;  // of the last framework that was refused
};

}  // namespace

std::string name_framework(const PlannedRun& run) { return FrameworkChoice(run.framework, run.installation).name(); }

std::string name_training(const PlannedRun& run) {
  return fmt::format("{} {} on {}, strategy {}", name_framework(run), run.spec.model.name, enum_name(run.platform),
                     run.spec.parallel.strategy);
}

std::string describe(const PlannedRun& run) {
  std::string text = name_training(run);
  if (run.runs > 1) text += fmt::format(", run {} of {}", run.run, run.runs);
  if (run.profile)
    text += fmt::format(", profiled by {} in steps {} to {}", enum_name(run.profile->profiler), run.profile->first_step,
                        run.profile->last_step);
  return text;
}

SuitePlan plan_suite(const Experiment& experiment, const SuiteRequest& request, const MachineFacts& machine) {
  return SuitePlanner(experiment, request, machine).plan();
}

}  // namespace tprimat::suite
