#include <fmt/format.h>

#include "cli/documents.h"
#include "cli/verbs.h"
#include "launch/frameworks.h"
#include "telemetry/gpu_libraries.h"
#include "telemetry/machine.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat::cli {
namespace {

constexpr const char* k_detect_examples =
    "  tprimat detect            this machine's facts as a table\n"
    "  tprimat detect --json     the same as JSON\n";

std::vector<document::DetectedFramework> detect_frameworks(Platform platform) {
  std::vector<document::DetectedFramework> list;
  for (const suite::FrameworkModule& module : suite::framework_modules()) {
    const auto found = module.find(suite::checkout_of(module, {}, platform));
    document::DetectedFramework framework{
        module.id, std::string(module.long_name), module.platforms, found.has_value(), {}, {}, {}};
    if (found) framework.version = found->version, framework.place = found->place;
    if (const auto lacking = suite::find_lacking(module, platform)) framework.lacking = lacking->what;
    list.push_back(std::move(framework));
  }
  return list;
}

std::string describe_cores(const CpuFacts& cpu) {
  std::string text;
  if (cpu.sockets) text += fmt::format("{} socket{}, ", *cpu.sockets, *cpu.sockets == 1 ? "" : "s");
  if (cpu.cores) text += fmt::format("{} core{}, ", *cpu.cores, *cpu.cores == 1 ? "" : "s");
  return text + fmt::format("{} hardware thread{}, {} usable", cpu.logical_processors,
                            cpu.logical_processors == 1 ? "" : "s", cpu.usable_threads);
}

std::string describe_memory(const MachineFacts& machine) {
  std::string text = machine.memory_bytes ? format_gb(*machine.memory_bytes) : "unknown";
  if (machine.memory_limit_bytes) text += fmt::format(", limited to {}", format_gb(*machine.memory_limit_bytes));
  if (machine.numa_nodes)
    text += fmt::format(", {} NUMA node{}", *machine.numa_nodes, *machine.numa_nodes == 1 ? "" : "s");
  return text;
}

void add_gpu_rows(TextTable& table, const MachineFacts& machine) {
  if (machine.gpus.empty()) table.rows.push_back({"GPUs", "none visible to a management library"});
  for (const GpuFacts& gpu : machine.gpus) {
    std::string text = gpu.name;
    if (gpu.memory_bytes) text += ", " + format_gb(*gpu.memory_bytes);
    if (gpu.compute_units)
      text += fmt::format(", {} {}", *gpu.compute_units, gpu.platform == Platform::nvd ? "SMs" : "CUs");
    if (gpu.power_limit_watts) text += fmt::format(", limit {:.0f} W", *gpu.power_limit_watts);
    table.rows.push_back({fmt::format("GPU {}", gpu.index), text});
  }
  for (const auto& [library, version] : machine.drivers) table.rows.push_back({"driver (" + library + ")", version});
  for (const auto& [stack, version] : machine.stacks) table.rows.push_back({stack, version});
}

void add_framework_rows(TextTable& table, Platform platform) {
  for (const suite::FrameworkModule& module : suite::framework_modules()) {
    const auto found = module.find(suite::checkout_of(module, {}, platform));
    std::string state = found ? found->version + ", " + found->place : "not installed";
    if (const auto lacking = suite::find_lacking(module, platform)) state += "; " + lacking->what;
    table.rows.push_back({"framework", fmt::format("{} ({}): {}", enum_name(module.id), module.long_name, state)});
  }
}

std::string render(const MachineFacts& machine) {
  TextTable table;
  table.header = {"fact", "this machine"};
  table.rows = {{"platform", std::string(display_name(machine.platform))},
                {"processor", machine.cpu.model_name},
                {"threads", describe_cores(machine.cpu)},
                {"instruction sets", join(machine.cpu.instruction_sets, " ")},
                {"governor", machine.cpu.governor.value_or("unknown")},
                {"memory", describe_memory(machine)},
                {"transparent huge pages", machine.transparent_huge_pages.value_or("unknown")},
                {"kernel", machine.kernel + " " + machine.architecture},
                {"system", machine.distribution.value_or("unknown")},
                {"container", machine.container.value_or("none detected")},
                {"virtual machine", machine.virtual_machine.value_or("none detected")}};
  add_gpu_rows(table, machine);
  add_framework_rows(table, machine.platform);
  return render_text(table);
}

ExitStatus detect(const Session& session) {
  const MachineFacts machine = read_machine(open_gpu_libraries());
  print_result(session.json
                   ? print_json(to_json(document::DetectedMachine{machine, detect_frameworks(machine.platform)}))
                   : render(machine));
  return ExitStatus::done;
}

}  // namespace

void add_detect_verb(CommandLine& program, Session& session) {
  CommandLine* verb = add_verb(program, session, "detect",
                               "Show this machine's platform, devices, drivers and frameworks", k_detect_examples);
  add_json_option(*verb, session);
  verb->callback([&session] { session.action = [&session] { return detect(session); }; });
}

}  // namespace tprimat::cli
