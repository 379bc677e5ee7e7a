#include "run/machine_option.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/error.h"
#include "planner/stated_figures.h"

namespace tprimat::suite {
namespace {

std::optional<double> stated(double value, double unit) {
  return value > 0 ? std::optional(value * unit) : std::nullopt;
}

void require_same(const std::string& name, const planner::Machine& machine) {
  const bool is_cpu = machine.cores > 0;
  const planner::Machine* named = planner::find_machine(name);
  if (is_cpu ? name == "cpu" : named != nullptr && named->id == machine.id) return;
  throw Error(Problem{fmt::format("the probe is of {}, but --gpu names '{}'", machine.id, name.substr(0, 64)), "--gpu",
                      "omit --gpu: the probe names the device"});
}

}  // namespace

planner::ProbedMachine read_machine_option(const MachineOptions& options, const std::vector<std::string>& gpu,
                                           const planner::ParameterSet& parameters) {
  constexpr double k_giga = 1e9, k_bits = 8;
  planner::StatedMachine given;
  given.network_bandwidth = stated(options.network_gbps, k_giga / k_bits);
  given.link_bandwidth = stated(options.link_gb, k_giga);
  given.memory_bytes = stated(options.memory_gb, k_giga);
  if (options.gpus_per_node > 0) given.devices_per_node = options.gpus_per_node;
  const auto paths = planner::split_lists(options.probes, "--machine");
  planner::ProbedMachine probed = planner::read_probed_machine(paths, given, parameters);
  for (const std::string& name : planner::split_lists(gpu, "--gpu")) require_same(name, probed.machine);
  return probed;
}

void require_no_machine_options(const MachineOptions& options) {
  for (const auto& [value, option] : {std::pair{options.network_gbps, "--network-gbps"},
                                      {options.link_gb, "--link-bandwidth"},
                                      {options.memory_gb, "--memory-gb"},
                                      {static_cast<double>(options.gpus_per_node), "--gpus-per-node"}})
    if (value > 0)
      throw Error(Problem{"describes a machine that was measured and needs --machine", option,
                          "add --machine probe.json, which tprimat probe --json writes"});
}

}  // namespace tprimat::suite
