#include "run/expert_question.h"

#include <fmt/format.h>

#include "base/error.h"
#include "text/choice.h"

namespace tprimat::suite {
namespace {

void require_sparse(const planner::PlanRequest& request, const PlanModelOptions& options) {
  if (request.shape.is_sparse()) return;
  const char* option = !options.routing.empty()      ? "--routing"
                       : !options.dispatcher.empty() ? "--dispatcher"
                       : options.expert_load > 0     ? "--expert-load"
                                                     : nullptr;
  if (option != nullptr)
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
