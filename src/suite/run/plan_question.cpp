#include "run/plan_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/log.h"
#include "config/experiment.h"
#include "config/values.h"
#include "launch/frameworks.h"
#include "launch/trainer_program.h"
#include "planner/machine.h"
#include "planner/planned_config.h"
#include "planner/search.h"
#include "planner/stated_figures.h"
#include "process/process.h"
#include "run/expert_question.h"
#include "spec/hardware_catalogue.h"
#include "telemetry/gpu_libraries.h"
#include "telemetry/machine.h"
#include "text/choice.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

constexpr size_t k_max_cases = 256;

template <class Named>
std::vector<std::string> ids_of(const std::vector<Named>& all) {
  std::vector<std::string> ids;
  for (const Named& each : all) ids.push_back(each.id);
  return ids;
}

std::string remedy(const std::string& name, const std::vector<std::string>& ids) {
  const std::string near = suggest_word(name, ids);
  return near.empty() ? fmt::format("choose from: {}", join(ids, ", ")) : near;
}

// "cpu": the processor that this runs on, measured now, for a few seconds.
planner::Machine measure_processor() {
  log_note("measuring this processor for a few seconds; other work on it lowers the figures");
  const MachineFacts machine = read_machine(open_gpu_libraries());
  LocalRunner runner;
  auto measured =
      planner::processor_facts(probe_processor(runner, {Precision::bf16, Precision::fp32}, machine.cpu.usable_threads));
  if (!measured)
    throw Error(Problem{"the measurement does not yield the processor's peaks and bandwidth", k_trainer_name,
                        "see the output of tprimat probe, or name a GPU with --gpu"},
                ExitStatus::missing_component);
  planner::ProcessorFacts& facts = *measured;
  const double whole = machine.memory_bytes.value_or(0);
  facts.memory_bytes = std::min(whole, machine.memory_limit_bytes.value_or(whole));
  return planner::processor_machine(facts);
}

planner::Machine require_machine(const std::string& name, const char* option) {
  if (auto machine = planner::find_machine(name)) return *machine;
  throw Error(Problem{fmt::format("the planner does not know the GPU '{}'", name.substr(0, 64)), option,
                      remedy(name.substr(0, 64), ids_of(planner::machines()))});
}

const planner::Family& require_family(const std::string& name) {
  if (const planner::Family* family = planner::find_family(name)) return *family;
  throw Error(Problem{fmt::format("the planner does not know the framework '{}'", name.substr(0, 64)), "--framework",
                      remedy(name.substr(0, 64), ids_of(planner::families()))});
}

std::vector<std::string> products_of(const planner::Machine& machine) {
  std::vector<std::string> names;
  for (const planner::PlanPrecision each :
       {planner::PlanPrecision::bf16, planner::PlanPrecision::fp16, planner::PlanPrecision::fp8,
        planner::PlanPrecision::fp4, planner::PlanPrecision::fp32})
    if (machine.peak(each) > 0) names.emplace_back(enum_name(each));
  return names;
}

int64_t usual_sequence(const ModelSpec& model) { return std::min<int64_t>(model.max_position_embeddings, 8192); }

// At least 512 and divisible by all these GPU counts; if that would be too large, at least one per GPU.
int64_t usual_batch(const std::vector<int64_t>& counts) {
  constexpr int64_t k_min = 512, k_max = 1 << 16;
  int64_t common = 1;
  for (const int64_t each : counts) {
    common = std::lcm(common, each);
    if (common > k_max) return std::max(k_min, *std::max_element(counts.begin(), counts.end()));
  }
  return (k_min + common - 1) / common * common;
}

// The parts of a model's entry that a plan written as a configuration keeps.
planner::PlannedModel planned_model(const ModelEntry& entry) {
  planner::PlannedModel model{entry.spec.name, entry.given_name, {}};
  const auto keep = [&](const char* key, const std::string& value) {
    if (!value.empty()) model.further.push_back({key, value});
  };
  if (entry.dataset != ModelEntry().dataset) keep("dataset_path", entry.dataset);
  keep("initial_weights", entry.initial_weights);
  keep("tokenizer_path", entry.tokenizer_path.value_or(""));
  keep("nemo_recipe", entry.nemo_recipe.value_or(""));
  keep("primus_config", entry.primus_config.value_or(""));
  return model;
}

// On processors the planner knows only our own trainer.
void require_trainer_of(const planner::Machine& machine, const planner::Family& family) {
  const bool on_processor = machine.cores > 0;
  if (on_processor == family.own_trainer) return;
  throw Error(on_processor
                  ? Problem{"the planner models only the native trainer on CPUs", "--framework",
                            "add --framework native, or name a GPU"}
                  : Problem{"the planner models the native trainer on CPUs only", "--gpu", "plan it with --gpu cpu"});
}

// A plan for a framework that `run` knows is one that it can start.
void require_launchable(const planner::Machine& machine, const std::string& name) {
  const auto framework = parse_enum<Framework>(name);
  const auto part = find_hardware(machine.id);
  const FrameworkModule* module = framework ? find_framework(*framework) : nullptr;
  if (module == nullptr || !part || runs_on(*module, part->platform)) return;
  throw Error(Problem{fmt::format("{} does not run on GPUs of {}, such as {}", display_name(*framework),
                                  display_name(part->platform), machine.id),
                      "--framework", "name another framework, or another GPU"});
}

// Combines the options and the configuration.
class QuestionReader {
 public:
  QuestionReader(const PlanModelOptions& options, const LoadedExperiment& configured,
                 const planner::PlannerSettings& planner)
      : options_(options), experiment_(configured.experiment) {
    const bool is_probed = !options.machine.probes.empty();
    if ((options.gpu.empty() && !is_probed) || options.gpus.empty())
      throw Error(
          Problem{"needs --gpu and --gpus", "plan", "for instance: tprimat plan llama3.1_8b --gpu H100 --gpus 64"});
    if (is_probed)
      add_probed(planner.parameters);
    else
      add_machines();
    counts_ = planner::parse_counts(planner::split_lists(options.gpus, "--gpus"), "--gpus", left_out_);
    if (machines_.size() * counts_.size() > k_max_cases)
      throw Error(Problem{
          fmt::format("{} GPU models with {} GPU counts are too many to compare", machines_.size(), counts_.size()),
          "--gpus", fmt::format("compare at most {} combinations", k_max_cases)});
    read_common();
    assume_sizes(configured.settings);
    if (!planner.is_built_in()) assume("parameters of " + planner.file);
    for (const std::string& text : planner::split_lists(options.price, "--price"))
      take_price(planner::parse_price(text, "--price"));
    compared_.scaling = read_scaling();
    compared_.most = options.top;
    compared_.explains = counts_.size() == 1;
    if (probed_) show_probed(planner.parameters);
    read_targets();
  }

  PlanQuestion question() const {
    PlanQuestion question{{}, compared_, left_out_, {}, parse_enum<Framework>(options_.framework)};
    for (const planner::Machine& machine : machines_)
      for (const int64_t gpus : counts_) question.cases.push_back(case_of(machine, gpus));
    if (const ModelEntry* entry = experiment_.find_model_entry(options_.model)) question.model = planned_model(*entry);
    return question;
  }

 private:
  bool has_processor() const {
    return std::any_of(machines_.begin(), machines_.end(), [](const planner::Machine& each) { return each.cores > 0; });
  }

  void add_machines() {
    require_no_machine_options(options_.machine);
    for (const std::string& name : planner::split_lists(options_.gpu, "--gpu"))
      add_machine(name == "cpu" ? measure_processor() : require_machine(name, "--gpu"));
  }

  void add_probed(const planner::ParameterSet& parameters) {
    probed_ = read_machine_option(options_.machine, options_.gpu, parameters);
    add_machine(probed_->machine);
  }

  void add_machine(const planner::Machine& machine) {
    const bool is_new = std::none_of(machines_.begin(), machines_.end(),
                                     [&](const planner::Machine& each) { return each.id == machine.id; });
    if (is_new) machines_.push_back(machine);
  }

  void read_common() {
    common_.shape = require_counted(experiment_, options_.model, "MODEL").spec;
    if (const std::string what = planner::unpredictable(common_.shape); !what.empty())
      throw Error(Problem{fmt::format("'{}' is {}, for which the planner predicts no step time", options_.model, what),
                          "MODEL", "choose another model; docs/models.md lists them"});
    common_.sequence_length = options_.sequence_length > 0 ? options_.sequence_length : experiment_.sequence_length;
    common_.global_batch = options_.global_batch > 0 ? options_.global_batch : experiment_.global_batch_size;
    common_.family = &require_family(options_.framework);
    if (common_.family->own_trainer && !list_special_parts(common_.shape).empty())
      throw Error(
          Problem{fmt::format("the native trainer does not support {}", list_special_parts(common_.shape).front()),
                  "--framework", "name another framework, or choose a dense model"});
    planner::keep_to_launcher(common_, options_.framework);
    common_.zero_bubble = options_.zero_bubble, common_.trains_adapters = options_.lora;
    if (options_.lora && common_.family->own_trainer)
      throw Error(Problem{"the native trainer trains all weights", "--lora", "omit --lora, or choose --framework"});
    take_expert_options(common_, options_, experiment_);
    common_.precision = planner::parse_plan_precision(options_.precision, "--precision", has_processor());
    for (const planner::Machine& machine : machines_) {
      require_trainer_of(machine, *common_.family);
      require_launchable(machine, options_.framework);
    }
    take_recipe(common_, options_, machines_);
    for (const planner::Machine& machine : machines_)
      if (machine.peak(common_.precision) <= 0)
        throw Error(
            Problem{fmt::format("{} does not support {} matrix products", machine.id, enum_name(common_.precision)),
                    "--precision", fmt::format("choose {}, or another GPU", join(products_of(machine), " or "))});
  }

  void show_probed(const planner::ParameterSet& parameters) {
    const planner::Machine& machine = probed_->machine;
    const bool spans_nodes = counts_.back() > machine.gpus_per_domain;
    if (spans_nodes && machine.network_bandwidth <= 0)
      throw Error(Problem{fmt::format("{} ranks with {} per node need the network between nodes, which one node does "
                                      "not measure",
                                      counts_.back(), machine.gpus_per_domain),
                          "--machine", "add --network-gbps GBIT/S, of a node"});
    planner::Workload workload;
    workload.family = common_.family, workload.precision = common_.precision;
    compared_.machine = planner::machine_figures(*probed_, parameters, workload);
    compared_.machine_notes = probed_->notes;
  }

  void assume(const std::string& what) { compared_.assumptions.push_back(what); }

  // A model of the catalogue must not get the sizes of the built-in toy models.
  void assume_sizes(const YamlNode& settings) {
    if (experiment_.find_model_entry(options_.model) != nullptr) return;
    if (options_.sequence_length <= 0 && !is_stated(settings, "training.data.seq_length")) {
      common_.sequence_length = usual_sequence(common_.shape);
      assume(fmt::format("SL {} (--seq)", common_.sequence_length));
    }
    if (options_.global_batch <= 0 && !is_stated(settings, "training.data.global_batch_size")) {
      const bool grows = options_.scaling == enum_name(planner::Scaling::weak);
      common_.global_batch = usual_batch(grows ? std::vector{counts_.front()} : counts_);
      assume(fmt::format("GBS {} (--gbs)", common_.global_batch));
    }
  }

  void take_price(const planner::StatedPrice& price) {
    if (price.gpu.empty()) return state_price("", "every GPU", price.usd_per_gpu_hour);
    const planner::Machine machine = require_machine(price.gpu, "--price");
    const bool is_asked = std::any_of(machines_.begin(), machines_.end(),
                                      [&](const planner::Machine& each) { return each.id == machine.id; });
    if (!is_asked)
      throw Error(Problem{fmt::format("the price is for {}, which --gpu does not name", machine.id), "--price",
                          "add it to --gpu, or leave the price out"});
    state_price(machine.id, machine.id, price.usd_per_gpu_hour);
  }

  void state_price(const std::string& id, const std::string& name, double usd) {
    if (!prices_.emplace(id, usd).second)
      throw Error(
          Problem{fmt::format("two prices for {}", name), "--price", "state one, as in --price H100=2.5,B200=4"});
  }

  std::optional<planner::Scaling> read_scaling() const {
    if (options_.scaling.empty()) return std::nullopt;
    const auto scaling = parse_choice<planner::Scaling>(options_.scaling, "--scaling");
    if (counts_.size() < 2)
      throw Error(Problem{"needs more than one GPU count", "--scaling", "for instance --gpus 8..512"});
    if (scaling == planner::Scaling::weak)
      for (const int64_t gpus : counts_) (void)batch_of(gpus, scaling);
    return scaling;
  }

  void require_tokens(const char* option) const {
    if (options_.tokens.empty())
      throw Error(Problem{"needs the number of training tokens", option, "add --tokens, for instance --tokens 15T"});
  }

  void read_targets() {
    if (options_.target_days > 0) compared_.target_days = options_.target_days;
    if (options_.budget_usd > 0) compared_.budget_usd = options_.budget_usd;
    if (compared_.target_days) require_tokens("--target-days");
    if (compared_.budget_usd) require_tokens("--budget");
    if (options_.budget_usd <= 0) return;
    const bool any = std::any_of(machines_.begin(), machines_.end(),
                                 [&](const planner::Machine& machine) { return price_of(machine).has_value(); });
    if (!any)
      throw Error(Problem{fmt::format("no price is known for {}", join(ids_of(machines_), ", ")), "--budget",
                          "add --price USD_PER_GPU_HOUR, or the configuration's cloud_costs"});
  }

  int64_t batch_of(int64_t gpus, std::optional<planner::Scaling> scaling) const {
    if (scaling != planner::Scaling::weak) return common_.global_batch;
    const int64_t grown = common_.global_batch * gpus;
    if (grown % counts_.front() == 0) return grown / counts_.front();
    throw Error(Problem{fmt::format("a batch of {} on {} GPUs does not scale evenly to {} GPUs", common_.global_batch,
                                    counts_.front(), gpus),
                        "--scaling", "choose GPU counts that are multiples of the first, or another --gbs"});
  }

  // The platform of the configuration that has this device.
  const PlatformSetup* setup_of(const planner::Machine& machine) const {
    for (const auto& [platform, setup] : experiment_.platforms)
      if (const auto configured = planner::find_machine(setup.device_model); configured && configured->id == machine.id)
        return &setup;
    return nullptr;
  }

  std::optional<double> price_of(const planner::Machine& machine) const {
    for (const std::string& id : {machine.id, std::string()})
      if (const auto stated = prices_.find(id); stated != prices_.end()) return stated->second;
    const PlatformSetup* setup = setup_of(machine);
    if (setup == nullptr || !setup->usd_per_hour) return std::nullopt;
    return *setup->usd_per_hour / static_cast<double>(setup->num_devices);
  }

  std::optional<double> tdp_of(const planner::Machine& machine) const {
    const PlatformSetup* setup = setup_of(machine);
    if (setup != nullptr && setup->tdp_watts) return setup->tdp_watts;
    const auto part = find_hardware(machine.id);
    return part ? part->tdp_watts : std::nullopt;
  }

  // The configuration's memory for this GPU, if it differs from the catalogue's.
  void take_memory(const planner::Machine& machine, planner::PlanCase& each) const {
    for (const auto& [platform, setup] : experiment_.platforms) {
      if (probed_ || &setup != setup_of(machine) || !setup.memory_per_device_gb) continue;
      const double stated = *setup.memory_per_device_gb * 1e9;
      if (stated == machine.memory_bytes) return;
      each.request.machine.memory_bytes = stated;
      each.memory_source = fmt::format("hardware.platforms.{}.memory_per_gpu_gb", enum_name(platform));
    }
  }

  planner::PlanCase case_of(const planner::Machine& machine, int64_t gpus) const {
    planner::PlanCase each{common_, {}};
    each.request.machine = machine, each.request.gpus = gpus;
    if (machine.cores > 0)  // which ranks of a node share
      each.request.machine.memory_bytes /= static_cast<double>(std::min(gpus, machine.gpus_per_domain));
    take_memory(machine, each);
    take_tuning(each.request, options_);
    if (probed_) each.memory_source = probed_->memory_source();
    each.request.global_batch = batch_of(gpus, compared_.scaling);
    planner::TrainingTerms& terms = each.terms;
    if (!options_.tokens.empty()) terms.tokens = planner::parse_tokens(options_.tokens, "--tokens");
    terms.usd_per_gpu_hour = price_of(machine), terms.tdp_watts = tdp_of(machine);
    if (options_.failure_gpu_hours > 0) terms.reliability.failure_gpu_hours = options_.failure_gpu_hours;
    if (options_.restart_minutes >= 0) terms.reliability.restart_seconds = options_.restart_minutes * 60;
    if (options_.checkpoint_bandwidth_gb > 0)
      terms.reliability.storage_bandwidth = options_.checkpoint_bandwidth_gb * 1e9;
    if (options_.node_noise_percent >= 0) terms.node_noise = options_.node_noise_percent / 100;
    return each;
  }

  const PlanModelOptions& options_;
  const Experiment& experiment_;
  std::vector<planner::Machine> machines_;
  std::optional<planner::ProbedMachine> probed_;
  std::vector<int64_t> counts_;
  planner::PlanRequest common_;
  std::vector<std::string> left_out_;
  std::map<std::string, double> prices_;  // USD per GPU and hour, by id; "": of every one
  planner::ComparisonOptions compared_;
};

}  // namespace

PlanQuestion read_plan_question(const PlanModelOptions& options, const LoadedExperiment& configured,
                                const planner::PlannerSettings& planner) {
  return QuestionReader(options, configured, planner).question();
}

std::string render_fastest_config(const PlanQuestion& question, const planner::PlanComparison& comparison) {
  const planner::PlanReport& plan = comparison.plans.front();
  if (plan.ranked.empty())
    throw Error(Problem{plan.legal > 0 ? "no layout fits into memory" : "no layout is legal", "--yaml",
                        "run the same command without --yaml for details"},
                ExitStatus::work_failed);
  std::string text;
  for (const std::string& assumed : comparison.assumptions) text += fmt::format("# Assumed: {}\n", assumed);
  return text + planner::render_planned_config(question.cases.front().request, plan.ranked.front(), question.model,
                                               question.framework);
}

}  // namespace tprimat::suite
