#include "run/memory_report.h"

#include <fmt/format.h>

#include "text/format.h"

namespace tprimat::suite {
namespace {

std::string render_memory_parts(const planner::MemoryEstimate& memory) {
  TextTable table{{"part", "memory", "share"}, {}, {1, 2}};
  for (const auto& [name, bytes] : memory.parts())
    if (bytes > 0) table.rows.push_back({name, format_memory(bytes), format_percent(bytes / memory.total())});
  table.rows.push_back({"all", format_memory(memory.total()), format_percent(1)});
  return render_text(table);
}

std::string render_device_memory(const Forecast& known, const PlannedRun& run,
                                 const planner::PlannerSettings& planner) {
  if (!known.device) return "device memory: unknown\n";
  const std::string capacity = fmt::format("{} ({})", format_memory(known.device->bytes), known.device->source);
  const std::string who = known.device->ranks > 1
                              ? fmt::format("all {} ranks, {}: ", known.device->ranks, format_memory(known.needed))
                              : "";
  if (known.fits()) return fmt::format("{}fits into {}\n", who, capacity);
  return fmt::format("{}does not fit into {}\n{}\n", who, capacity, suggest_fitting(run, known, planner));
}

}  // namespace

std::string render_memory(const PlannedRun& run, const Forecast& known, const planner::PlannerSettings& planner) {
  const std::string title = fmt::format("{}, {}\n\n", name_training(run), print_planned_layout(run));
  if (!known.memory) return title + fmt::format("the planner has no model of {}\n", known.missing);
  return title + render_memory_parts(*known.memory) + "\n" + render_device_memory(known, run, planner);
}

}  // namespace tprimat::suite
