#include "run/gpus_of_run.h"

#include <algorithm>

#include "launch/platform_environment.h"

namespace tprimat::suite {

std::optional<GpuUse> gpus_of(const PlannedRun& run) {
  if (run.platform == Platform::cpu) return std::nullopt;
  const int64_t nodes = std::max<int64_t>(1, run.request.launch.nodes), ranks = run.spec.parallel.ranks();
  const bool inherits = run.plan.place == Whereabouts::children;
  const auto stated = platform_environment(run.request);
  return GpuUse{run.platform,
                [stated, inherits](const std::string& name) -> std::optional<std::string> {
                  if (const auto found = stated.find(name); found != stated.end()) return found->second;
                  return inherits ? read_environment(name) : std::nullopt;
                },
                (ranks + nodes - 1) / nodes};
}

}  // namespace tprimat::suite
