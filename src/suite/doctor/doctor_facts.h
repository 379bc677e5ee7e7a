#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/frameworks.h"
#include "launch/trainer_program.h"
#include "telemetry/gpu_libraries.h"
#include "telemetry/machine.h"

namespace tprimat::suite {

// A limit of this process, as `ulimit` shows it. No value: unlimited.
struct ResourceLimit {
  std::optional<double> value;
};

// A graphics device on the PCI bus, whether or not a driver knows it.
struct PciGpu {
  std::string address;  // "0000:17:00.0"
  bool nvidia = false;  // else AMD
};

// Configuration and load of the host. Absent: the system does not report it.
struct HostFacts {
  std::vector<std::string> governors;  // of all processors, each named once
  std::optional<bool> turbo, smt, numa_balancing;
  std::optional<double> load;        // runnable processes, mean of the last minute
  std::optional<double> busy_share;  // of the machine's threads, over a second in which this program is idle
  std::optional<double>
      stolen_share;  // of the time that the hypervisor gave to other virtual machines, over the same second
  std::optional<double> available_memory_bytes, swap_bytes, swap_used_bytes;
  std::optional<double> shared_memory_bytes, shared_memory_free_bytes;  // /dev/shm
  std::optional<ResourceLimit> locked_memory, open_files, core_file;
  std::optional<std::string> clock_source;
  std::vector<PciGpu> pci_gpus;
};

// Reads below `root`; limits and /dev/shm are those of this process and system. Watches the machine for
// `watch_seconds`.
HostFacts read_host_facts(const std::filesystem::path& root = "/", double watch_seconds = 1.0);

// The file system that a folder is on, or will be on once it is made.
struct FolderFacts {
  std::string path;  // the folder, or its nearest parent that exists
  std::optional<double> free_bytes;
  bool writable = false;
};
FolderFacts read_folder_facts(const std::filesystem::path& folder);

// The intended use of the machine.
struct DoctorRequest {
  std::optional<Platform> platform;   // absent: the machine's own
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
  std::string installing;          // how to install it, as a sentence
  std::optional<Problem> lacking;  // why it cannot train on the platform although it is installed
};

// A program that a part of the suite needs.
struct ToolCondition {
  std::string program, needed_for, package;
  std::optional<std::string> place;
};

// The input of all checks. Tests make it up.
struct DoctorFacts {
  DoctorRequest request;
  MachineFacts machine;
  HostFacts host;
  FolderFacts output;
  std::vector<GpuCondition> gpus;
  std::vector<std::string> refused_libraries;  // installed libraries that cannot be used, and why
  std::vector<FrameworkCondition> frameworks;
  std::vector<ToolCondition> tools;
  std::vector<LibraryReport> gpu_libraries;  // empty where the trainer has no module for GPUs

  Platform platform() const { return request.platform.value_or(machine.platform); }
};

// All GPUs that the libraries see, or those that a program works on.
std::vector<GpuCondition> read_gpus(const std::vector<std::shared_ptr<const GpuLibrary>>& libraries,
                                    const std::optional<GpuUse>& use = {});

DoctorFacts read_doctor_facts(const DoctorRequest& request, const GpuLibraries& libraries);

}  // namespace tprimat::suite
