#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "doctor/host_facts.h"
#include "launch/frameworks.h"
#include "launch/trainer_program.h"
#include "telemetry/gpu_libraries.h"
#include "telemetry/machine.h"

namespace tprimat::suite {

// What the machine is to be fit for.
struct DoctorRequest {
  std::optional<Platform> platform;   // absent: what the machine is
  std::vector<Framework> frameworks;  // that must run here; empty: none in particular
  std::filesystem::path output = "output";
  std::map<std::string, std::string> paths;  // checkouts, as `paths:` of the configuration names them
};

struct GpuCondition {
  std::string name;  // "GPU 0", with the library's number
  GpuFacts facts;
  GpuState state;
  std::vector<GpuProcess> holders;
};

struct FrameworkCondition {
  Framework id = Framework::native;
  std::string long_name;
  std::vector<Platform> platforms;
  std::optional<Installation> installation;
  std::string installing;          // what brings it here, in a sentence
  std::optional<Problem> lacking;  // what keeps it from training on the platform, though it is installed
};

// A program that something needs beside the frameworks.
struct ToolCondition {
  std::string program, needed_for, package;
  std::optional<std::string> place;
};

// Everything that the checks judge. Tests invent it.
struct DoctorFacts {
  DoctorRequest request;
  MachineFacts machine;
  HostFacts host;
  FolderFacts output;
  std::vector<GpuCondition> gpus;
  std::vector<std::string> refused_libraries;  // that are installed and cannot be used, and why
  std::vector<FrameworkCondition> frameworks;
  std::vector<ToolCondition> tools;
  std::vector<LibraryReport> gpu_libraries;  // empty where the trainer has no module for GPUs

  Platform platform() const { return request.platform.value_or(machine.platform); }
};

DoctorFacts read_doctor_facts(const DoctorRequest& request, const GpuLibraries& libraries);

}  // namespace tprimat::suite
