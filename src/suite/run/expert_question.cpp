#include "run/expert_question.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "planner/tuning.h"
#include "spec/hardware_catalogue.h"
#include "text/choice.h"

namespace tprimat::suite {
namespace {

void require_sparse(const planner::PlanRequest& request, const PlanModelOptions& options) {
  if (request.shape.is_sparse()) return;
  const std::pair<bool, const char*> options_of_experts[] = {
      {!options.routing.empty(), "--routing"},      {!options.dispatcher.empty(), "--dispatcher"},
      {options.expert_load > 0, "--expert-load"},   {!options.graphs.empty(), "--graphs"},
      {options.expert_overlap, "--expert-overlap"}, {options.tuned, "--tuned"}};
  for (const auto& [asked, option] : options_of_experts)
    if (asked)
      throw Error(Problem{fmt::format("is for a mixture of experts, but '{}' is dense", options.model), option,
                          "omit it, or plan a mixture of experts"});
}

void require_launchable(const planner::PlanRequest& request) {
  const bool fused = request.dispatcher == Dispatcher::deepep || request.dispatcher == Dispatcher::hybridep;
  if (!fused || request.family->expert_parallel) return;
  throw Error(Problem{fmt::format("{} has no expert parallelism, so no dispatcher {}", request.family->full_name,
                                  enum_name(*request.dispatcher)),
                      "--dispatcher", "omit it, or add --framework megatron_core"});
}

// Of the parts that the planner knows: blocks of 32 share a scale in the products of Blackwell and CDNA 4.
bool scales_blocks(const planner::Machine& machine) {
  return machine.architecture.starts_with("blackwell") || machine.architecture == "cdna4";
}

void require_recipes(const planner::PlanRequest& request) {
  if (planner::has_recipes(request)) return;
  throw Error(Problem{fmt::format("sets what Megatron-Bridge's recipes for GPUs of NVIDIA set, not {} on {}",
                                  request.family->full_name, request.machine.id),
                      "--tuned",
                      "add --framework megatron_core and a GPU of NVIDIA, or state --graphs, --expert-overlap, "
                      "--moment-bytes and --gradient-bytes"});
}

// HybridEP is NVIDIA's; DeepEP has a port to AMD (Primus-Turbo).
void require_dispatcher_of(const planner::PlanRequest& request, const PlanModelOptions& options) {
  const auto part = find_hardware(request.machine.id);
  const bool amd = part ? part->platform == Platform::amd : request.machine.architecture.starts_with("cdna");
  if (!amd || request.dispatcher != Dispatcher::hybridep) return;
  throw Error(Problem{fmt::format("hybridep is for NVIDIA GPUs only, not {}", request.machine.id),
                      options.dispatcher.empty() ? "training.dispatcher" : "--dispatcher",
                      "choose alltoall or deepep"});
}

void require_settable(const planner::PlanRequest& request, const PlanModelOptions& options) {
  const planner::Family& family = *request.family;
  if (options.expert_overlap && !family.expert_parallel)
    throw Error(Problem{fmt::format("{} has no expert parallelism, so no exchanges to overlap", family.full_name),
                        "--expert-overlap", "omit it, or add --framework megatron_core"});
  if (options.gradient_bytes > 0 && family.own_trainer)
    throw Error(Problem{"the native trainer sums gradients in its own format", "--gradient-bytes", "omit it"});
}

}  // namespace

void take_expert_options(planner::PlanRequest& request, const PlanModelOptions& options, const Experiment& experiment) {
  require_sparse(request, options);
  if (!request.shape.is_sparse()) return;
  if (experiment.find_model_entry(options.model) != nullptr)
    request.routing = experiment.routing, request.dispatcher = experiment.dispatcher;
  if (!options.routing.empty()) request.routing = parse_choice<Routing>(options.routing, "--routing");
  if (!options.dispatcher.empty()) request.dispatcher = parse_choice<Dispatcher>(options.dispatcher, "--dispatcher");
  request.expert_load = options.expert_load;
  if (request.routing == Routing::balanced && request.expert_load > 1)
    throw Error(Problem{fmt::format("balanced routing gives every rank the mean load, not {:g} x", request.expert_load),
                        "--expert-load", "omit it, or add --routing learned"});
  if (!request.routing) request.routing = Routing::learned;
  require_launchable(request);
}

void take_tuning(planner::PlanRequest& request, const PlanModelOptions& options) {
  require_settable(request, options);
  if (options.tuned) require_recipes(request), planner::tune(request);
  if (!options.graphs.empty()) request.graphs = parse_choice<planner::Graphs>(options.graphs, "--graphs");
  request.overlaps_experts = request.overlaps_experts || options.expert_overlap;
  if (options.moment_bytes > 0) request.moment_bytes = static_cast<double>(options.moment_bytes);
  if (options.gradient_bytes > 0) request.gradient_bytes = static_cast<double>(options.gradient_bytes);
  require_dispatcher_of(request, options);
}

void take_recipe(planner::PlanRequest& request, const PlanModelOptions& options,
                 const std::vector<planner::Machine>& machines) {
  if (options.recipe.empty()) return;
  request.recipe = parse_choice<planner::Recipe>(options.recipe, "--recipe");
  if (request.precision != planner::PlanPrecision::fp8)
    throw Error(Problem{fmt::format("is for FP8 products, not {}", enum_name(request.precision)), "--recipe",
                        "omit it, or add --precision fp8"});
  if (request.recipe != planner::Recipe::mx) return;
  for (const planner::Machine& machine : machines)
    if (!scales_blocks(machine))
      throw Error(Problem{fmt::format("{} cannot scale products by blocks of 32", machine.id), "--recipe",
                          "choose tensorwise or rowwise, or a GPU of Blackwell or CDNA 4"});
}

}  // namespace tprimat::suite
