#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tprimat::suite {

// A limit of this process, as `ulimit` shows it. Without a value there is none.
struct ResourceLimit {
  std::optional<double> value;
};

// A graphics device on the PCI bus, whether or not a driver knows it.
struct PciGpu {
  std::string address;  // "0000:17:00.0"
  bool nvidia = false;  // else AMD
};

// How the host is set up and what it is doing now. What the system does not tell is absent.
struct HostFacts {
  std::vector<std::string> governors;  // of all processors, each named once
  std::optional<bool> turbo, smt, numa_balancing;
  std::optional<double> load;          // processes that wanted to run, mean of the last minute
  std::optional<double> busy_share;    // of the machine's threads, over a second in which we did nothing
  std::optional<double> stolen_share;  // of the time that the hypervisor gave to others, over the same second
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

}  // namespace tprimat::suite
