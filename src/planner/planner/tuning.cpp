#include "planner/tuning.h"

#include <fmt/format.h>

#include <vector>

#include "planner/recipes.h"
#include "spec/hardware_catalogue.h"

namespace tprimat::planner {
namespace {

// "CUDA graphs, overlapped exchanges and 16-bit moments and gradients"
std::string enumerate(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return text;
}

// Those that are set, or those that are not.
std::vector<std::string> list_settings(const PlanTuning& t, bool set) {
  std::vector<std::string> names;
  if ((t.graphs != Graphs::none) == set)
    names.emplace_back(t.graphs == Graphs::whole ? "CUDA graphs of whole steps" : "CUDA graphs");
  if (t.overlaps_experts == set) names.emplace_back("overlapped exchanges");
  const bool moments = (t.moment_bytes == k_half_bytes) == set, gradients = (t.gradient_bytes == k_half_bytes) == set;
  if (moments || gradients)
    names.emplace_back(moments && gradients ? "16-bit moments and gradients"
                       : moments            ? "16-bit moments"
                                            : "16-bit gradients");
  if (set && t.narrow_attention) names.emplace_back("FP8 attention");
  return names;
}

}  // namespace

bool can_overlap_experts(const Layout& layout) {
  return layout.expert > 1 && layout.recompute != Recompute::full && (layout.pipeline == 1 || layout.chunks > 1);
}

bool has_recipes(const PlanRequest& request) {
  const auto part = find_hardware(request.machine.id);
  const bool nvidia = part ? part->platform == Platform::nvd
                           : !request.machine.architecture.empty() && !request.machine.architecture.starts_with("cdna");
  return nvidia && request.shape.is_sparse() && request.family->id == "megatron_core";
}

void tune(PlanRequest& request) {
  const bool whole = request.precision == PlanPrecision::fp8 && request.recipe == Recipe::mx &&
                     request.machine.architecture.starts_with("blackwell");
  request.tuned = true;
  request.graphs = whole ? Graphs::whole : Graphs::parts;
  request.overlaps_experts = true;
  request.moment_bytes = request.gradient_bytes = k_half_bytes;
  request.narrow_attention = whole && recipes_narrow_attention(request.shape.name, request.machine);
  if (!request.dispatcher) request.dispatcher = Dispatcher::hybridep;
}

std::optional<PlanTuning> describe_tuning(const Workload& fastest, const PlanRequest& request) {
  if (!request.shape.is_sparse()) return std::nullopt;
  PlanTuning tuning;
  tuning.graphs = fastest.graphs, tuning.overlaps_experts = fastest.overlaps_experts;
  tuning.narrow_attention = fastest.narrow_attention;
  tuning.moment_bytes = fastest.moment_bytes, tuning.gradient_bytes = fastest.summed_bytes();
  tuning.tuned = request.tuned, tuning.has_recipes = has_recipes(request);
  return tuning;
}

std::string render_tuning(const PlanTuning& tuning) {
  const std::vector<std::string> without = list_settings(tuning, false), with = list_settings(tuning, true);
  if (tuning.tuned || without.empty()) return fmt::format("  tuned     yes: planned with {}\n", enumerate(with));
  const char* remedy = tuning.has_recipes ? "--tuned plans with them" : "options of tprimat plan set each of them";
  return fmt::format("  tuned     no: planned without {}; {}\n", enumerate(without), remedy);
}

}  // namespace tprimat::planner
