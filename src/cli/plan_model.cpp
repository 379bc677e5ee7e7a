#include "cli/plan_model.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/counted_request.h"
#include "cli/draw_plot.h"
#include "cli/parse_choice.h"
#include "cli/plan_figures.h"
#include "cli/plan_inputs.h"
#include "cli/plan_limits.h"
#include "cli/plan_plot.h"
#include "planner/plan_comparison.h"
#include "planner/planned_config.h"
#include "spec/hardware_catalogue.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat {
namespace {

constexpr size_t k_most_cases = 256;

template <class Named>
std::vector<std::string> ids_of(const std::vector<Named>& all) {
  std::vector<std::string> ids;
  for (const Named& each : all) ids.push_back(each.id);
  return ids;
}

std::string remedy(const std::string& name, const std::vector<std::string>& ids) {
  const std::string near = nearest_word(name, ids);
  return near.empty() ? fmt::format("choose of: {}", fmt::join(ids, ", ")) : fmt::format("did you mean '{}'?", near);
}

Machine require_machine(const std::string& name, const char* option) {
  if (auto machine = find_machine(name)) return *machine;
  throw Error(Problem{fmt::format("the planner knows no GPU '{}'", name.substr(0, 64)), option,
                      remedy(name.substr(0, 64), ids_of(machines()))});
}

const Family& require_family(const std::string& name) {
  if (const Family* family = find_family(name)) return *family;
  throw Error(Problem{fmt::format("the planner knows no framework '{}'", name.substr(0, 64)), "--framework",
                      remedy(name.substr(0, 64), ids_of(families()))});
}

// What the options and the configuration say together.
class PlanQuestion {
 public:
  PlanQuestion(const Session& session, const PlanModelOptions& options)
      : options_(options), experiment_(load_session_experiment(session)) {
    if (options.gpu.empty() || options.gpus.empty())
      throw Error(Problem{"needs --gpu and --gpus", "plan", "for instance: tprimat plan llama --gpu H100 --gpus 64"});
    for (const std::string& name : options.gpu)
      add_machine(is_this_processor(name) ? measure_processor() : require_machine(name, "--gpu"));
    counts_ = parse_counts(options.gpus, "--gpus");
    if (machines_.size() * counts_.size() > k_most_cases)
      throw Error(
          Problem{fmt::format("{} GPUs in {} numbers are too many to compare", machines_.size(), counts_.size()),
                  "--gpus", fmt::format("at most {} together", k_most_cases)});
    read_common();
    for (const std::string& text : options.price) take_price(parse_price(text, "--price"));
    compared_.scaling = read_scaling();
    compared_.most = options.top;
    compared_.explains = counts_.size() == 1;
    read_targets();
  }

  const ComparisonOptions& compared() const { return compared_; }

  std::vector<PlanCase> cases() const {
    std::vector<PlanCase> all;
    for (const Machine& machine : machines_)
      for (const int64_t gpus : counts_) all.push_back(case_of(machine, gpus));
    return all;
  }

  // The model's key, where it comes from the configuration.
  std::string configured_model() const {
    const ModelEntry* entry = experiment_.find_model_entry(options_.model);
    return entry == nullptr ? "" : entry->spec.name;
  }

 private:
  void add_machine(const Machine& machine) {
    const bool is_new =
        std::none_of(machines_.begin(), machines_.end(), [&](const Machine& each) { return each.id == machine.id; });
    if (is_new) machines_.push_back(machine);
  }

  void read_common() {
    common_.shape = require_counted(experiment_, options_.model, "MODEL");
    if (const std::string what = unpredictable(common_.shape); !what.empty())
      throw Error(Problem{fmt::format("'{}' is {}, which the planner does not predict", options_.model, what), "MODEL",
                          "choose a dense model; docs/models.md lists them"});
    common_.sequence_length = options_.sequence_length > 0 ? options_.sequence_length : experiment_.sequence_length;
    common_.global_batch = options_.global_batch > 0 ? options_.global_batch : experiment_.global_batch_size;
    common_.family = &require_family(options_.framework);
    keep_to_launcher(common_, options_.framework);
    common_.zero_bubble = options_.zero_bubble;
    common_.precision = parse_choice<PlanPrecision>(options_.precision, "--precision");
    for (const Machine& machine : machines_) require_trainer_of(machine, *common_.family);
    for (const Machine& machine : machines_)
      if (machine.peak(common_.precision) <= 0)
        throw Error(Problem{fmt::format("{} has no {} products", machine.id, enum_name(common_.precision)),
                            "--precision", "choose bf16, or another GPU"});
  }

  void take_price(const StatedPrice& price) {
    if (price.gpu.empty()) {
      for (const Machine& machine : machines_) prices_.try_emplace(machine.id, price.usd_per_gpu_hour);
      return;
    }
    const Machine machine = require_machine(price.gpu, "--price");
    const bool is_asked =
        std::any_of(machines_.begin(), machines_.end(), [&](const Machine& each) { return each.id == machine.id; });
    if (!is_asked)
      throw Error(Problem{fmt::format("a price of {}, which is not planned for", machine.id), "--price",
                          "name it in --gpu, or leave the price out"});
    prices_[machine.id] = price.usd_per_gpu_hour;
  }

  std::optional<Scaling> read_scaling() const {
    if (options_.scaling.empty()) {
      if (!options_.plot.empty())
        throw Error(Problem{"draws a scaling curve, and needs --scaling", "--plot", "add --scaling weak or strong"});
      return std::nullopt;
    }
    if (!options_.plot.empty()) require_plot_format(options_.plot, "--plot");
    const auto scaling = parse_choice<Scaling>(options_.scaling, "--scaling");
    if (counts_.size() < 2)
      throw Error(Problem{"needs more than one number of GPUs", "--scaling", "for instance --gpus 8..512"});
    if (scaling == Scaling::weak)
      for (const int64_t gpus : counts_) (void)batch_of(gpus, scaling);
    return scaling;
  }

  void read_targets() {
    if (options_.target_days > 0) compared_.target_days = options_.target_days;
    if (options_.budget_usd > 0) compared_.budget_usd = options_.budget_usd;
    for (const auto& [option, asked] :
         {std::pair{"--target-days", options_.target_days > 0}, {"--budget", options_.budget_usd > 0}})
      if (asked && options_.tokens.empty())
        throw Error(Problem{"needs the tokens to train", option, "add --tokens, for instance --tokens 15T"});
    if (options_.budget_usd <= 0) return;
    const bool any = std::any_of(machines_.begin(), machines_.end(),
                                 [&](const Machine& machine) { return price_of(machine).has_value(); });
    if (!any)
      throw Error(Problem{fmt::format("no price is known of {}", fmt::join(ids_of(machines_), ", ")), "--budget",
                          "add --price USD_PER_GPU_HOUR, or the configuration's cloud_costs"});
  }

  int64_t batch_of(int64_t gpus, std::optional<Scaling> scaling) const {
    if (scaling != Scaling::weak) return common_.global_batch;
    const int64_t grown = common_.global_batch * gpus;
    if (grown % counts_.front() == 0) return grown / counts_.front();
    throw Error(Problem{fmt::format("a batch of {} on {} GPUs cannot grow evenly to {} GPUs", common_.global_batch,
                                    counts_.front(), gpus),
                        "--scaling", "choose numbers of GPUs that are multiples of the first, or another --gbs"});
  }

  // The platform of the configuration that has this device.
  const PlatformSetup* setup_of(const Machine& machine) const {
    for (const auto& [platform, setup] : experiment_.platforms)
      if (const auto configured = find_machine(setup.device_model); configured && configured->id == machine.id)
        return &setup;
    return nullptr;
  }

  std::optional<double> price_of(const Machine& machine) const {
    if (const auto stated = prices_.find(machine.id); stated != prices_.end()) return stated->second;
    const PlatformSetup* setup = setup_of(machine);
    if (setup == nullptr || !setup->usd_per_hour) return std::nullopt;
    return *setup->usd_per_hour / static_cast<double>(setup->num_devices);
  }

  std::optional<double> tdp_of(const Machine& machine) const {
    const PlatformSetup* setup = setup_of(machine);
    if (setup != nullptr && setup->tdp_watts) return setup->tdp_watts;
    const auto part = find_hardware(machine.id);
    return part ? part->tdp_watts : std::nullopt;
  }

  PlanCase case_of(const Machine& machine, int64_t gpus) const {
    PlanCase each{common_, {}};
    each.request.machine = machine, each.request.gpus = gpus;
    if (machine.cores > 0) each.request.machine.memory_bytes /= static_cast<double>(gpus);  // which ranks share
    each.request.global_batch = batch_of(gpus, compared_.scaling);
    TrainingTerms& terms = each.terms;
    if (!options_.tokens.empty()) terms.tokens = parse_tokens(options_.tokens, "--tokens");
    terms.usd_per_gpu_hour = price_of(machine), terms.tdp_watts = tdp_of(machine);
    if (options_.failure_gpu_hours > 0) terms.reliability.failure_gpu_hours = options_.failure_gpu_hours;
    if (options_.restart_minutes >= 0) terms.reliability.restart_seconds = options_.restart_minutes * 60;
    if (options_.checkpoint_bandwidth_gb > 0)
      terms.reliability.storage_bandwidth = options_.checkpoint_bandwidth_gb * 1e9;
    if (options_.node_noise_percent >= 0) terms.node_noise = options_.node_noise_percent / 100;
    return each;
  }

  const PlanModelOptions& options_;
  Experiment experiment_;
  std::vector<Machine> machines_;
  std::vector<int64_t> counts_;
  PlanRequest common_;
  std::map<std::string, double> prices_;  // USD per GPU and hour, by id
  ComparisonOptions compared_;
};

std::string render_config_of(const PlanQuestion& question, const std::vector<PlanCase>& cases,
                             const PlanComparison& comparison) {
  const PlanReport& plan = comparison.plans.front();
  if (plan.ranked.empty())
    throw Error(Problem{"no layout fits into memory", "--yaml", "see the same command without --yaml"},
                ExitStatus::work_failed);
  return render_planned_config(cases.front().request, plan.ranked.front(), question.configured_model());
}

bool is_answered(const PlanComparison& comparison) {
  const auto& answers = comparison.answers;
  if (!answers.empty())
    return std::any_of(answers.begin(), answers.end(), [](const PlanAnswer& answer) { return answer.found; });
  return std::any_of(comparison.plans.begin(), comparison.plans.end(),
                     [](const PlanReport& plan) { return plan.fitting > 0; });
}

void add_question_options(CLI::App& verb, PlanModelOptions& options) {
  verb.add_option("--scaling", options.scaling, "weak (--gbs grows with the GPUs) or strong: show the efficiency")
      ->type_name("NAME");
  verb.add_option("--plot", options.plot, "Draw --scaling's curves, or --validate's predictions, into a .png or .svg")
      ->type_name("FILE");
  verb.add_option("--tokens", options.tokens, "Tokens to train: 15T, 300B (default: 1T)")->type_name("N");
  verb.add_option("--price", options.price, "USD per GPU and hour: 2.5, or H100=2.5,B200=4")
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--target-days", options.target_days, "Fewest GPUs that train the tokens in so many days")
      ->type_name("DAYS")
      ->check(CLI::Range(1e-3, 1e6));
  verb.add_option("--budget", options.budget_usd, "Quickest plan for at most so many USD")
      ->type_name("USD")
      ->check(CLI::Range(1e-2, 1e13));
  verb.add_flag("--yaml", options.yaml, "Print the fastest layout as a configuration");
}

void add_failure_options(CLI::App& verb, PlanModelOptions& options) {
  const Reliability& published = published_reliability();
  verb.add_option(
          "--mtbf", options.failure_gpu_hours,
          fmt::format("Hours of one GPU between failures (default: {:.0f}, of Llama 3)", published.failure_gpu_hours))
      ->type_name("HOURS")
      ->check(CLI::Range(1.0, 1e12));
  verb.add_option("--restart-minutes", options.restart_minutes,
                  fmt::format("From a failure until training goes on, but for reading the checkpoint (default: {:.0f})",
                              published.restart_seconds / 60))
      ->type_name("MINUTES")
      ->check(CLI::Range(0.0, 1e5));
  verb.add_option("--checkpoint-bandwidth", options.checkpoint_bandwidth_gb,
                  fmt::format("GB/s of the storage for all GPUs together (default: {:.3f} per GPU, of Llama 3)",
                              published.storage_bandwidth_per_gpu / 1e9))
      ->type_name("GB/S")
      ->check(CLI::Range(1e-3, 1e7));
  verb.add_option("--node-noise", options.node_noise_percent,
                  "Standard deviation of a node's step time in percent (default: as calibrated)")
      ->type_name("PERCENT")
      ->check(CLI::Range(0.0, 100.0));
}

}  // namespace

void add_plan_model_options(CLI::App& verb, PlanModelOptions& options) {
  verb.add_option("model", options.model, "Model of the configuration or of the catalogue")->type_name("MODEL");
  verb.add_option("--gpu", options.gpu, "GPUs to plan for, side by side")
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--gpus", options.gpus, "How many: 64, 8,16,64 or 8..16384")
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--framework", options.framework, "Program that trains: megatron_core, fsdp2, nanotron, ...")
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option("--precision", options.precision, "bf16, fp16, fp8 or fp4")->type_name("NAME")->capture_default_str();
  verb.add_option("--seq", options.sequence_length, "Tokens per sequence (default: the configuration's)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
  verb.add_option("--gbs", options.global_batch, "Sequences per step (default: the configuration's)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  verb.add_flag("--zero-bubble", options.zero_bubble, "Pipelines fill their waiting with gradients of weights (ZB-H1)");
  verb.add_option("--top", options.top, "Layouts to show")->capture_default_str()->check(CLI::Range(1, 10000));
  add_question_options(verb, options);
  add_failure_options(verb, options);
}

ExitStatus plan_model(const Session& session, const PlanModelOptions& options, const ParameterSet& parameters) {
  const PlanQuestion question(session, options);
  const std::vector<PlanCase> cases = question.cases();
  if (options.yaml && cases.size() != 1)
    throw Error(Problem{"needs one GPU and one number of them", "--yaml", "for instance --gpu H100 --gpus 64"});
  const PlanComparison comparison = compare_plans(cases, parameters, question.compared());
  if (options.yaml)
    print_result(render_config_of(question, cases, comparison));
  else
    print_result(session.json ? print_json(to_json(comparison)) : render_plan_comparison(comparison));
  if (!options.plot.empty()) draw_scaling(comparison, options.plot);
  return is_answered(comparison) ? ExitStatus::done : ExitStatus::work_failed;
}

}  // namespace tprimat
