#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "config/draft.h"
#include "config/layout_rules.h"
#include "config/values.h"
#include "spec/pipeline_layout.h"
#include "text/choice.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

// VP where the chunks alone are stated; 1 where they are no multiple of PP.
int64_t count_chunks(const ParallelSpec& layout) {
  const auto places = list_place_layers(*layout.pipeline_layout);
  if (!places || static_cast<int64_t>(places->size()) % layout.pipeline != 0) return 1;
  return static_cast<int64_t>(places->size()) / layout.pipeline;
}

ParallelSpec spec_of(const raw::Layout& layout, const std::string& strategy) {
  ParallelSpec spec;
  spec.strategy = strategy;
  spec.tensor = layout.tensor.value_or(1);
  spec.pipeline = layout.pipeline.value_or(1);
  spec.virtual_pipeline = layout.virtual_pipeline.value_or(1);
  spec.data = layout.data.value_or(1);
  spec.context = layout.context.value_or(1);
  spec.sequence_parallel = layout.sequence_parallel.value_or(false);
  spec.ends_as_layers = layout.ends_as_layers.value_or(false);
  spec.expert = layout.expert;
  spec.expert_tensor = layout.expert_tensor;
  spec.pipeline_layout = layout.pipeline_layout;
  if (!layout.virtual_pipeline && spec.pipeline_layout) spec.virtual_pipeline = count_chunks(spec);
  spec.zero_stage = layout.zero_stage.value_or(0);
  return spec;
}

std::string print_rules(const std::vector<std::string>& rules) { return join(rules, "; "); }

// One layout of one model on one platform.
class LayoutResolver {
 public:
  LayoutResolver(Draft& draft, const ModelSpec& model, Platform platform)
      : draft_(draft),
        model_(model),
        platform_(platform),
        setup_(draft.experiment.platforms.at(platform)),
        task_{model, setup_.num_devices, draft.experiment.micro_batch_size, draft.experiment.global_batch_size,
              draft.experiment.sequence_length} {}

  void resolve(const std::string& strategy, raw::Layout& layout) {
    path_ = fmt::format("parallelism.{}.{}.{}", strategy, model_.name, enum_name(platform_));
    if (!inputs_are_sound()) return;
    ParallelSpec spec = spec_of(layout, strategy);
    if (!layout.data) spec.data = follow_data(spec);
    const std::vector<std::string> broken = list_broken_rules(task_, spec, layout.accumulation);
    if (broken.empty()) {
      fill_absent(layout, spec);
      warn_memory(spec);
    } else {
      report(strategy, spec, broken);
    }
    draft_.experiment.strategies[strategy][model_.name][platform_] = spec;
  }

  // The layout of a platform with one device if none is stated.
  void check_single_device() {
    path_ = fmt::format("hardware.platforms.{}", enum_name(platform_));
    if (!inputs_are_sound()) return;
    const std::vector<std::string> broken = list_broken_rules(task_, ParallelSpec{});
    if (!broken.empty())
      draft_.diagnosis.add_error(
          {fmt::format("{} on one {} device: {}", model_.name, enum_name(platform_), print_rules(broken)),
           origin_of(draft_.tree, "training.data.global_batch_size"), suggest_layout(task_, ParallelSpec{})},
          "training.data");
    else
      warn_memory(ParallelSpec{});
  }

  // The chosen strategy has no layout for this model on this platform, which has several devices.
  void report_missing(const std::string& strategy, bool strategy_exists) {
    path_ = "parallelism." + strategy;
    if (!inputs_are_sound()) return;
    const std::string what = fmt::format("strategy '{}' has no layout for {} on {}, which has {} devices", strategy,
                                         model_.name, enum_name(platform_), setup_.num_devices);
    const std::string hint = fmt::format("{}, under parallelism.{}.{}.{}", suggest_layout(task_, ParallelSpec{}),
                                         strategy, model_.name, enum_name(platform_));
    const bool names_strategy = is_stated(draft_.tree, "experiment.methodology");
    const std::string devices = fmt::format("hardware.platforms.{}.num_gpus", enum_name(platform_));
    const std::string origin = origin_of(draft_.tree, strategy_exists  ? path_
                                                      : names_strategy ? "experiment.methodology"
                                                                       : devices);
    if (strategy_exists)
      draft_.diagnosis.add_warning({what + "; it cannot be trained there", origin, hint});
    else
      draft_.diagnosis.add_error({what, origin, hint});
  }

 private:
  bool inputs_are_sound() const {
    return draft_.diagnosis.are_sound({path_, "training.data", "models." + model_.name,
                                       fmt::format("hardware.platforms.{}.num_gpus", enum_name(platform_))});
  }

  int64_t follow_data(const ParallelSpec& spec) const {
    const double others =
        static_cast<double>(spec.tensor) * static_cast<double>(spec.pipeline) * static_cast<double>(spec.context);
    const double data = static_cast<double>(task_.devices) / others;
    return data >= 1 ? static_cast<int64_t>(data) : 1;
  }

  void fill_absent(raw::Layout& layout, const ParallelSpec& spec) {
    take_or(draft_, layout.tensor, path_ + ".tensor_model_parallel_size", spec.tensor);
    take_or(draft_, layout.pipeline, path_ + ".pipeline_model_parallel_size", spec.pipeline);
    take_or(draft_, layout.data, path_ + ".data_parallel_size", spec.data,
            derived_by("number of devices / (TP x PP x CP)"));
    take_or(draft_, layout.accumulation, path_ + ".gradient_accumulation_steps",
            task_.global_batch_size / (task_.micro_batch_size * spec.data), derived_by("GBS / (MBS x DP)"));
    take_or(draft_, layout.zero_stage, path_ + ".zero_stage", spec.zero_stage);
  }

  // A layout that nobody runs keeps no other from running; make_train_spec refuses it.
  void report(const std::string& strategy, const ParallelSpec& spec, const std::vector<std::string>& broken) {
    const Problem problem{fmt::format("{} cannot run: {}", path_, print_rules(broken)), origin_of(draft_.tree, path_),
                          suggest_layout(task_, spec)};
    const bool chosen = strategy == draft_.experiment.methodology && !draft_.plans_layouts;
    // PARALLEL or --strategy may be for the models whose layouts are sound.
    const Origin asked = find_origin(draft_.tree, "experiment.methodology");
    const bool is_asked_for = asked.provenance == Provenance::environment || asked.place == "--strategy";
    draft_.experiment.unusable_layouts[{strategy, model_.name, platform_}] = problem;
    if (chosen && !is_asked_for)
      draft_.diagnosis.add_error(problem, path_);
    else if (!draft_.plans_layouts || !is_narrowed())
      draft_.diagnosis.add_warning(problem);
  }

  // An override may break layouts that suit the file.
  bool is_narrowed() const {
    return is_overridden(draft_.tree, fmt::format("hardware.platforms.{}.num_gpus", enum_name(platform_))) ||
           is_overridden(draft_.tree, "training.data.global_batch_size") ||
           is_overridden(draft_.tree, "training.data.micro_batch_size") ||
           is_overridden(draft_.tree, "training.data.seq_length");
  }

  void warn_memory(const ParallelSpec& spec) {
    if (!setup_.memory_per_device_gb) return;
    const double available = *setup_.memory_per_device_gb * 1e9;
    const auto state_bytes = [&](int64_t zero_stage) {
      return estimate_state_bytes(model_, spec, setup_.precision, draft_.experiment.optimizer, zero_stage);
    };
    const double whole = state_bytes(spec.zero_stage);
    if (whole <= available) return;
    const double sharded = state_bytes(3);
    const std::string layout = fmt::format(".{}.{}", model_.name, enum_name(platform_));
    const bool fits_sharded = spec.data > 1 && sharded <= available;
    draft_.remark(
        path_,
        fmt::format("{}: weights, gradients and optimizer states alone exceed a device's memory",
                    path_.substr(0, path_.rfind(layout))),
        fmt::format("{}.{} {} of {}{}", model_.name, enum_name(platform_), format_gb(whole), format_gb(available),
                    fits_sharded ? fmt::format(", sharded {}", format_gb(sharded)) : ""),
        fits_sharded ? "shard over the data-parallel ranks (zero_stage: 3, FSDP)"
                     : "use more devices, or a larger TP or PP");
  }

  Draft& draft_;
  const ModelSpec& model_;
  Platform platform_;
  const PlatformSetup& setup_;
  LayoutTask task_;
  std::string path_;
};

std::vector<std::string> model_names(const Draft& draft) {
  std::vector<std::string> names;
  for (const auto& [name, model] : draft.raw.models.entries) names.push_back(name);
  return names;
}

void report_unknown_model(Draft& draft, const std::string& strategy, const std::string& name) {
  const std::vector<std::string> names = model_names(draft);
  draft.diagnosis.add_error(
      {fmt::format("parallelism.{}.{} matches no model; the models are {}", strategy, name, join(names, ", ")),
       origin_of(draft.tree, fmt::format("parallelism.{}.{}", strategy, name)), suggest_word(name, names)});
}

void resolve_strategy(Draft& draft, const std::string& strategy, raw::LayoutsByModel& by_model) {
  for (auto& [name, by_platform] : by_model.entries) {
    const ModelEntry* model = draft.experiment.find_model_entry(name);
    if (model == nullptr) {
      if (draft.is_sound("models")) report_unknown_model(draft, strategy, name);
      continue;
    }
    for (auto& [key, layout] : by_platform.entries) {
      const auto platform = parse_enum<Platform>(key);
      if (platform && draft.experiment.platforms.count(*platform) != 0)
        LayoutResolver(draft, model->spec, *platform).resolve(strategy, layout);
    }
  }
}

// One warning for each platform that has layouts and no machine.
void warn_unused_layouts(Draft& draft) {
  std::set<std::string> unused;
  for (const auto& [strategy, by_model] : draft.raw.parallelism.entries)
    for (const auto& [model, by_platform] : by_model.entries)
      for (const auto& [platform, layout] : by_platform.entries)
        if (draft.raw.hardware.platforms.find(platform) == nullptr &&
            is_stated(draft.tree, fmt::format("parallelism.{}.{}.{}", strategy, model, platform)))
          unused.insert(platform);
  for (const std::string& platform : unused)
    draft.warn("parallelism", fmt::format("the layouts for {0} are not used: hardware.platforms has no {0}", platform));
}

// SL against the model itself, whatever the layout.
void check_sequence(Draft& draft, const ModelSpec& model) {
  const std::string path = "training.data.seq_length";
  if (draft.experiment.sequence_length <= model.max_position_embeddings) return;
  if (!draft.diagnosis.are_sound({path, "models." + model.name})) return;
  draft.diagnosis.add_error({fmt::format("training.data.seq_length {} is above max_position_embeddings {} of models.{}",
                                         draft.experiment.sequence_length, model.max_position_embeddings, model.name),
                             origin_of(draft.tree, path),
                             fmt::format("set seq_length to at most {}", model.max_position_embeddings)});
}

bool has_layout(const raw::Config& config, const std::string& strategy, const std::string& model, Platform platform) {
  const raw::LayoutsByModel* by_model = config.parallelism.find(strategy);
  const raw::LayoutsByPlatform* by_platform = by_model == nullptr ? nullptr : by_model->find(model);
  return by_platform != nullptr && by_platform->find(std::string(enum_name(platform))) != nullptr;
}

void check_methodology_name(Draft& draft) {
  std::vector<std::string> names = {"single", "maximum_performance", "identical_config"};
  for (const auto& [name, layouts] : draft.raw.parallelism.entries) names.push_back(name);
  const std::string& chosen = draft.experiment.methodology;
  if (std::find(names.begin(), names.end(), chosen) != names.end()) return;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  draft.fail("experiment.methodology",
             fmt::format("'{}' is not a strategy; the choices are {}", chosen, join(names, ", ")),
             suggest_word(chosen, names));
}

// Several strategies, of which none is named, where some platform needs one.
bool is_choice_open(Draft& draft, bool exists) {
  const auto& strategies = draft.raw.parallelism.entries;
  const bool needs_one =
      std::ranges::any_of(draft.experiment.platforms, [](const auto& each) { return each.second.num_devices > 1; });
  if (exists || !needs_one || strategies.size() < 2 || is_stated(draft.tree, "experiment.methodology")) return false;
  std::vector<std::string> names;
  for (const auto& [name, layouts] : strategies) names.push_back(name);
  draft.diagnosis.add_error({fmt::format("experiment.methodology is missing; the strategies are {}", join(names, ", ")),
                             origin_of(draft.tree, "parallelism"),
                             "state one of them, or choose it with PARALLEL or --strategy"});
  return true;
}

// Every model on every platform needs a layout of the chosen strategy, unless the platform has one device.
void check_chosen_strategy(Draft& draft) {
  if (draft.plans_layouts || !draft.diagnosis.are_sound({"experiment.methodology", "parallelism"})) return;
  const std::string strategy = draft.experiment.methodology;
  const raw::LayoutsByModel* layouts = draft.raw.parallelism.find(strategy);
  const bool exists = layouts != nullptr && !layouts->entries.empty();
  if (is_choice_open(draft, exists)) return;
  for (const ModelEntry& model : draft.experiment.models)
    for (const auto& [platform, setup] : draft.experiment.platforms) {
      if (has_layout(draft.raw, strategy, model.spec.name, platform)) continue;
      LayoutResolver resolver(draft, model.spec, platform);
      if (setup.num_devices == 1)
        resolver.check_single_device();
      else
        resolver.report_missing(strategy, exists);
    }
}

// Processors alone, of which nothing is stated that would be another figure for a part of them.
bool leaves_ranks_open(const Draft& draft) {
  const auto& platforms = draft.experiment.platforms;
  const auto found = platforms.find(Platform::cpu);
  if (platforms.size() != 1 || found == platforms.end() || draft.plans_layouts) return false;
  const PlatformSetup& setup = found->second;
  const bool has_figures =
      setup.memory_per_device_gb || setup.usd_per_hour || setup.tdp_watts || !setup.peak_flops_override.empty();
  return draft.derived.contains("hardware.platforms.cpu.num_gpus") && draft.raw.parallelism.entries.empty() &&
         draft.experiment.methodology == "single" && setup.framework == Framework::native && !has_figures &&
         draft.experiment.launch.launcher == Launcher::local;
}

// One rank per memory domain, each a replica, where the batch divides and the replicas fit.
void spread_over_domains(Draft& draft) {
  const auto [domains, memory_bytes] = draft.open_ranks;
  if (domains < 2 || !draft.diagnosis.errors().empty() || !leaves_ranks_open(draft)) return;
  Experiment& experiment = draft.experiment;
  PlatformSetup& setup = experiment.platforms.at(Platform::cpu);
  ParallelSpec spec;
  spec.strategy = experiment.methodology;
  spec.data = domains;
  for (const ModelEntry& model : experiment.models) {
    const LayoutTask task{model.spec, domains, experiment.micro_batch_size, experiment.global_batch_size,
                          experiment.sequence_length};
    const double bytes = estimate_state_bytes(model.spec, spec, setup.precision, experiment.optimizer, spec.zero_stage);
    if (!list_broken_rules(task, spec).empty() || bytes * static_cast<double>(domains) > memory_bytes / 2) return;
  }
  setup.num_devices = domains;
  for (const ModelEntry& model : experiment.models)
    experiment.strategies[spec.strategy][model.spec.name][Platform::cpu] = spec;
}

}  // namespace

void resolve_layouts(Draft& draft) {
  for (const ModelEntry& model : draft.experiment.models) check_sequence(draft, model.spec);
  for (auto& [strategy, by_model] : draft.raw.parallelism.entries) resolve_strategy(draft, strategy, by_model);
  check_methodology_name(draft);
  check_chosen_strategy(draft);
  warn_unused_layouts(draft);
  spread_over_domains(draft);
}

}  // namespace tprimat::suite
