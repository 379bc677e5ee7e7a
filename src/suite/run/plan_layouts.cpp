#include "run/plan_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "config/layout_rules.h"
#include "launch/frameworks.h"
#include "planner/plan_report.h"
#include "planner/search.h"
#include "planner/spec_workload.h"
#include "run/forecast.h"
#include "text/format.h"
#include "text/words.h"

namespace tprimat::suite {
namespace {

constexpr const char* k_option = "--from-plan";

TrainSpec lay_out(const TrainSpec& spec, const PlannedLayout& planned) {
  planner::Workload workload;
  workload.shape = spec.model, workload.layout = planned.layout;
  workload.layers_of_places = planned.layers_of_places, workload.recomputed_modules = planned.recomputed_modules;
  TrainSpec laid_out = planner::with_layout(spec, workload);
  laid_out.parallel.strategy = planned.strategy;
  return laid_out;
}

// Where the launcher starts the ranks. A framework that refuses this layout may take another one.
Whereabouts place_of(const PlannedRun& training) {
  try {
    return plan_launch(require_framework(training.framework, training.platform), training.request).place;
  } catch (const Error&) {
    return Whereabouts::children;
  }
}

std::string name_of(const PlannedRun& training) {
  return fmt::format("{} {} on {}", enum_name(training.framework), training.spec.model.name,
                     enum_name(training.platform));
}

planner::PlanRequest request_of(const PlannedRun& training, const planner::Machine& machine,
                                const MachineFacts& facts) {
  const planner::Workload asked = planner::workload_of(training.spec, training.framework, training.platform).workload;
  planner::PlanRequest request;
  request.shape = asked.shape, request.family = asked.family, request.precision = asked.precision;
  request.sequence_length = asked.sequence_length, request.global_batch = asked.global_batch;
  request.gpus = training.spec.parallel.ranks();
  request.keeps_masters = asked.keeps_masters, request.repeats_core = asked.repeats_core;
  request.moment_bytes = asked.moment_bytes, request.offload = asked.offload;
  request.routing = asked.routing, request.dispatcher = asked.dispatcher;
  request.machine = machine;
  const auto memory = device_memory_of(training, facts);  // of a processor: that all ranks share
  request.machine.memory_bytes = memory ? memory->bytes : std::numeric_limits<double>::max();
  if (asked.family->own_trainer) request.usable_memory = 1;  // which is counted and not estimated
  planner::keep_to_launcher(request, std::string(enum_name(training.framework)));
  return request;
}

// Finds the fastest layouts that are accepted.
class LayoutSearch {
 public:
  LayoutSearch(const PlannedRun& training, const MachineFacts& machine, const planner::PlannerSettings& planner)
      : training_(training), machine_(machine), planner_(planner) {}

  std::vector<PlannedLayout> find(const planner::PlanRequest& request, size_t top) {
    // To rank at first; more where too few of them are accepted, until so many say enough of the others.
    constexpr size_t k_first = 32, k_max = 4096;
    for (size_t most = std::max(k_first, 4 * top);; most *= 4) {
      const planner::SearchOutcome outcome = planner::search_layouts(request, planner_.parameters, most);
      std::vector<PlannedLayout> accepted = take(outcome.ranked, top);
      if (accepted.size() < top && outcome.ranked.size() == most && most < std::max(k_max, top)) continue;
      if (accepted.empty()) throw no_layout(request, outcome);
      return accepted;
    }
  }

 private:
  std::vector<PlannedLayout> take(const std::vector<planner::RankedLayout>& ranked, size_t top) {
    std::vector<PlannedLayout> accepted;
    for (const planner::RankedLayout& each : ranked) {
      if (accepted.size() == top) break;
      const planner::Layout& layout = each.workload.layout;
      const std::vector<int64_t>& places = each.workload.layers_of_places;
      PlannedLayout planned{layout, name_layout(layout, !places.empty()), each.time.total(), places,
                            each.workload.recomputed_modules};
      if (accepts(planned)) accepted.push_back(std::move(planned));
    }
    return accepted;
  }

  bool accepts(const PlannedLayout& planned) {
    const planner::Layout& layout = planned.layout;
    PlannedRun run = training_;
    run.spec = run.request.spec = lay_out(training_.spec, planned);
    const LayoutTask task{run.spec.model, layout.num_gpus(), layout.micro_batch, run.spec.global_batch_size,
                          run.spec.sequence_length};
    if (!list_broken_rules(task, run.spec.parallel).empty()) return false;
    try {
      throw_if_any(check_train_spec(run.spec, name_of(run)));
      plan_launch(require_framework(run.framework, run.platform), run.request);
    } catch (const Error& error) {
      if (!refusal_) refusal_ = error;
      return false;
    }
    const Forecast known = forecast(run, machine_, planner_);
    return known.missing.empty() && known.fits();
  }

  // Why the framework refuses them, why none is legal, or what none fits into.
  Error no_layout(const planner::PlanRequest& request, const planner::SearchOutcome& outcome) const {
    if (refusal_) return *refusal_;
    if (outcome.legal == 0)
      return Error(Problem{fmt::format("no layout of {} is legal with a batch of {} on {} devices", name_of(training_),
                                       request.global_batch, request.gpus),
                           k_option, planner::name_legal_batch(planner::make_plan_report(request, outcome))});
    const auto memory = device_memory_of(training_, machine_);
    return Error(Problem{fmt::format("none of the {} legal layouts of {} fits into {}", outcome.legal,
                                     name_of(training_), memory ? format_memory(memory->bytes) : "memory"),
                         k_option, "use more devices, or a smaller model or sequence"});
  }

  const PlannedRun& training_;
  const MachineFacts& machine_;
  const planner::PlannerSettings& planner_;
  std::optional<Error> refusal_;  // of the first layout that was refused
};

void add_plan(TextTable& table, const LayoutPlan& plan) {
  for (size_t i = 0; i < plan.layouts.size(); ++i) {
    const PlannedLayout& each = plan.layouts[i];
    table.rows.push_back({std::string(enum_name(plan.framework)), plan.model, std::to_string(i + 1),
                          print_layout_sizes(each.layout), format_duration(each.step_seconds),
                          format_count(static_cast<double>(plan.tokens_per_step) / each.step_seconds), each.strategy});
  }
}

}  // namespace

std::optional<size_t> parse_top(std::string_view text) {
  constexpr std::string_view k_key = "top=";
  if (!text.starts_with(k_key)) return std::nullopt;
  const auto count = tprimat::parse_number<size_t>(text.substr(k_key.size()));
  return count && *count >= 1 && *count <= k_max_top ? count : std::nullopt;
}

std::string name_layout(const planner::Layout& layout, bool listed) {
  std::string name = "plan";
  const auto add = [&](const char* key, int64_t size) {
    if (size > 1) name += fmt::format("_{}{}", key, size);
  };
  add("tp", layout.tensor), add("pp", layout.pipeline), add("vp", layout.chunks), add("cp", layout.context);
  add("ep", layout.expert), add("etp", layout.expert_tensor);
  name += fmt::format("_dp{}", layout.data);
  if (layout.sharding != planner::Sharding::none) name += fmt::format("_zero{}", static_cast<int>(layout.sharding));
  name += fmt::format("_mbs{}", layout.micro_batch);
  if (layout.recompute != Recompute::none) name += fmt::format("_{}", enum_name(layout.recompute));
  return name + (layout.ends_as_layers ? "_ends" : "") + (listed ? "_listed" : "");
}

std::string print_layout_sizes(const planner::Layout& layout) {
  planner::PlanLine line;
  static_cast<planner::Layout&>(line) = layout;
  const int stage = static_cast<int>(layout.sharding);
  return planner::format_sizes(line) + (stage > 0 ? fmt::format(", ZeRO {}", stage) : "") +
         planner::format_further(line);
}

std::string render_layout_plans(const std::vector<LayoutPlan>& plans) {
  TextTable table{{"framework", "model", "rank", "layout", "predicted step", "tokens/s", "strategy"}, {}, {2, 4, 5}};
  for (const LayoutPlan& plan : plans) add_plan(table, plan);
  return table.rows.empty() ? "" : render_text(table);
}

std::vector<TrainSpec> LayoutPlanner::choose(const PlannedRun& training) {
  if (training.installation)
    throw Error(
        Problem{fmt::format("layouts of {} and of another installation are not ranked apart", name_framework(training)),
                k_option, "name the framework without a label, or choose layouts with --strategy"});
  std::vector<TrainSpec> specs;
  for (const PlannedLayout& each : plan_of(training).layouts) specs.push_back(lay_out(training.spec, each));
  return specs;
}

const LayoutPlan& LayoutPlanner::plan_of(const PlannedRun& training) {
  const std::string& model = training.spec.model.name;
  for (const LayoutPlan& known : plans_)
    if (known.framework == training.framework && known.model == model) return known;
  PlannedRun placed = training;
  placed.plan.place = place_of(training);
  const planner::PlanRequest request = request_of(placed, require_machine(placed), around_.machine);
  std::vector<PlannedLayout> layouts = LayoutSearch(placed, around_.machine, planner_).find(request, top_);
  plans_.push_back({training.platform, training.framework, model, training.spec.tokens_per_step(), top_,
                    std::move(layouts), training.spec.model.is_sparse()});
  return plans_.back();
}

planner::Machine LayoutPlanner::require_machine(const PlannedRun& training) {
  std::optional<PeakInfo> peak;
  if (training.platform == Platform::cpu && training.framework == Framework::native) {
    if (const auto measured = peaks_.find(training)) peak = measured->peak;
    if (around_.interrupts && around_.interrupts() > 0)
      throw Error(Problem{"interrupted before the layouts were ranked", k_option, ""}, ExitStatus::interrupted);
  }
  const auto [machine, missing] = find_timed_machine(training, around_.machine, peak);
  if (missing.empty()) return *machine;
  throw Error(
      Problem{fmt::format("the planner cannot rank layouts of {}: it does not predict {}", name_of(training), missing),
              k_option, "name another framework, or choose layouts with --strategy"});
}

}  // namespace tprimat::suite
