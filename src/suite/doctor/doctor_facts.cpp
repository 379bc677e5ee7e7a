#include "doctor/doctor_facts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "telemetry/gpu_library.h"

namespace tprimat::suite {
namespace {

std::optional<std::string> find_in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    const std::string place = std::string(rest.substr(0, colon)) + "/" + program;
    if (::access(place.c_str(), X_OK) == 0) return place;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return std::nullopt;
}

std::vector<ToolCondition> find_tools() {
  std::vector<ToolCondition> tools = {
      {"mpirun", "the native trainer on several ranks", "openmpi-bin", {}},
      {"python3", "every framework but the native trainer", "python3 python3-venv", {}},
      {"gnuplot", "the plots of `tprimat compare`", "gnuplot-nox", {}},
  };
  for (ToolCondition& tool : tools) tool.place = find_in_path(tool.program);
  return tools;
}

std::vector<FrameworkCondition> find_frameworks(const DoctorRequest& request, Platform platform) {
  std::vector<FrameworkCondition> frameworks;
  for (const FrameworkModule& module : framework_modules()) {
    const auto stated = [&](const char* key) {
      const auto found = request.paths.find(fmt::format("{}.{}", module.checkout, key));
      return found == request.paths.end() ? std::string() : found->second;
    };
    const Checkout checkout{stated("installation"), stated("config_dir"), stated("run_script")};
    frameworks.push_back({module.id, std::string(module.long_name), module.platforms, module.find(checkout),
                          std::string(module.installing), find_lacking(module, platform)});
  }
  return frameworks;
}

std::vector<GpuCondition> read_gpus(const std::vector<std::shared_ptr<const GpuLibrary>>& libraries) {
  const std::vector<GpuProcess> processes = gpu_processes(libraries);
  std::vector<GpuCondition> gpus;
  for (const auto& library : libraries)
    for (GpuFacts& facts : library->devices()) {
      GpuCondition gpu{fmt::format("GPU {}", facts.index), facts, library->state(facts.index), {}};
      FaultLog impossible;
      impossible.count_reading();
      drop_implausible(gpu.state.now, facts, impossible);
      for (std::string& note : impossible.notes()) gpu.state.notes.push_back(std::move(note));
      for (const GpuProcess& process : processes)
        if (process.library == library->name() && process.device == facts.index) gpu.holders.push_back(process);
      gpus.push_back(std::move(gpu));
    }
  return gpus;
}

}  // namespace

DoctorFacts read_doctor_facts(const DoctorRequest& request, const GpuLibraries& libraries) {
  DoctorFacts facts;
  facts.request = request;
  facts.machine = read_machine(libraries.usable);
  facts.host = read_host_facts();
  facts.output = read_folder_facts(request.output);
  facts.gpus = read_gpus(libraries.usable);
  facts.refused_libraries = libraries.refused;
  facts.frameworks = find_frameworks(request, facts.platform());
  facts.tools = find_tools();
  return facts;
}

}  // namespace tprimat::suite
