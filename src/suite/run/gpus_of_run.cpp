#include "run/gpus_of_run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "launch/launch_plan.h"

namespace tprimat::suite {
namespace {

constexpr size_t k_max_named = 8;

bool is_same(const GpuProcess& a, const GpuProcess& b) {
  return a.library == b.library && a.device == b.device && a.process == b.process;
}

std::string name_all(const std::vector<GpuProcess>& processes) {
  std::string text;
  for (size_t i = 0; i < std::min(processes.size(), k_max_named); ++i)
    text += (i > 0 ? "; " : "") + describe(processes[i]);
  if (processes.size() > k_max_named) text += "; and " + std::to_string(processes.size() - k_max_named) + " more";
  return text;
}

}  // namespace

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

GpuNeighbours::GpuNeighbours(const Libraries& libraries, Platform platform)
    : libraries_(libraries), platform_(platform), before_(list()) {}

std::vector<GpuProcess> GpuNeighbours::list() const {
  if (platform_ == Platform::cpu) return {};
  std::vector<GpuProcess> found = gpu_processes(libraries_);
  std::erase_if(found, [&](const GpuProcess& each) {
    return each.platform != platform_ || each.process == static_cast<int64_t>(::getpid());
  });
  return found;
}

std::vector<GpuProcess> GpuNeighbours::list_new() const {
  std::vector<GpuProcess> found = list();
  std::erase_if(found, [&](const GpuProcess& each) {
    return std::any_of(before_.begin(), before_.end(), [&](const GpuProcess& known) { return is_same(known, each); });
  });
  return found;
}

std::vector<std::string> GpuNeighbours::report(double patience_seconds) const {
  std::vector<std::string> sentences;
  if (!before_.empty())
    sentences.push_back("other processes held GPU memory when the run started and may have slowed it down: " +
                        name_all(before_));
  const auto start = SteadyClock::now();
  std::vector<GpuProcess> left = list_new();
  while (!left.empty() && seconds_since(start) < patience_seconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    left = list_new();
  }
  if (!left.empty()) sentences.push_back("new processes still hold GPU memory after the run: " + name_all(left));
  return sentences;
}

}  // namespace tprimat::suite
